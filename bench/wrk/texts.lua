-- What posts of new text share. Their arguments are the folder of words.txt and a seed.
require "report"

local random, floor, concat = math.random, math.floor, table.concat
local words, parts = nil, {}

-- So many words; with a skew of 2 the common ones more often than the rare ones, as lib/texts.mjs takes them, with 1 all alike.
function text(count, skew)
   for i = 1, count do
      parts[i] = words[1 + floor(#words * random() ^ skew)]
   end
   return concat(parts, " ", 1, count)
end

-- Each request is a POST to the path; `make` gives the pieces of its body.
function post_texts(path, make)
   local head, tail

   function init(args)
      words = lines(args[1] .. "/words.txt")
      math.randomseed(tonumber(args[2]))
      head, tail = cut_post(path)
   end

   function request()
      local body = concat(make())
      return concat({ head, #body, tail, body })
   end
end
