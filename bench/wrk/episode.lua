-- POST /v1/episodic: arguments are the folder of words.txt and a seed. Every body is new text, which the service embeds.
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
   head, tail = wrk.format("POST", "/v1/episodic", nil, "x"):match("^(.*Content%-Length: )1(\r\n.*)x$")
end

local function text(count)
   for i = 1, count do
      parts[i] = words[1 + floor(#words * random())]
   end
   return concat(parts, " ", 1, count)
end

function request()
   local body = concat({
      '{"ticker":"T', random(500), '","task_type":"task_', random(20), '","question":"', text(10), '","answer":"', text(25),
      '","probability":0.', random(99), "}",
   })
   return concat({ head, #body, tail, body })
end
