-- POST /v1/lessons: arguments are the folder of words.txt and a seed. Every body is new text, of the kind that lib/texts.mjs makes.
local here = debug.getinfo(1, "S").source:match("^@(.*/)")
dofile(here .. "report.lua")

local words, head, tail
local random, floor, concat = math.random, math.floor, table.concat
local parts = {}

function init(args)
   words = lines(args[1] .. "/words.txt")
   math.randomseed(tonumber(args[2]))
   -- What wrk.format makes, cut where the length and the body go.
   wrk.headers["Content-Type"] = "application/json"
   local text = wrk.format("POST", "/v1/lessons", nil, "x")
   head, tail = text:match("^(.*Content%-Length: )1(\r\n.*)x$")
end

local function text(least, most)
   local count = random(least, most)
   for i = 1, count do
      local r = random()
      parts[i] = words[1 + floor(#words * r * r)]
   end
   return concat(parts, " ", 1, count)
end

function request()
   local body = concat({
      '{"takeaway":"', text(8, 14), '","context":"', text(15, 35), '","outcome":"', text(10, 25),
      '","tags":["topic-', random(50), '","market-', random(20), '"],"evidence":["decision-', random(100000),
      '","episode-', random(100000), '"]}',
   })
   return concat({ head, #body, tail, body })
end
