-- GET /v1/lessons/{id}: arguments are the folder of ids.txt and a seed. The requests are built before the clock starts.
require "report"

local requests = {}

function init(args)
   math.randomseed(tonumber(args[2]))
   for i, id in ipairs(lines(args[1] .. "/ids.txt")) do
      requests[i] = wrk.format("GET", "/v1/lessons/" .. id)
   end
end

function request()
   return requests[math.random(#requests)]
end
