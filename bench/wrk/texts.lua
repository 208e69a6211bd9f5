-- Shared by the scripts that post new text. Arguments are the folder of words.txt and a seed.
require "report"

local random, floor, concat = math.random, math.floor, table.concat
local words, parts = nil, {}

-- Random words. With a skew of 2 common words are more frequent, as in lib/texts.mjs; with 1 all are equally frequent.
function text(count, skew)
   for i = 1, count do
      parts[i] = words[1 + floor(#words * random() ^ skew)]
   end
   return concat(parts, " ", 1, count)
end

-- Each request is a POST to the path; `make` returns the pieces of its body.
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
