-- POST /v1/episodic/should_rerun: arguments are the folder of pairs.txt (ticker, task type), a seed and the signals as JSON. The requests
-- are built before the clock starts.
require "report"

local requests = {}

function init(args)
   math.randomseed(tonumber(args[2]))
   wrk.headers["Content-Type"] = "application/json"
   for i, pair in ipairs(lines(args[1] .. "/pairs.txt")) do
      local ticker, task = pair:match("^(%S+) (%S+)$")
      requests[i] = wrk.format("POST", "/v1/episodic/should_rerun", nil,
         '{"ticker":"' .. ticker .. '","task_type":"' .. task .. '","new_signals":' .. args[3] .. "}")
   end
end

function request()
   return requests[math.random(#requests)]
end
