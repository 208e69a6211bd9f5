-- POST /v1/deployments/{id}/reflect: arguments are the bench's folder, a seed and the name of a file of deployments. They are far more than
-- there are connections and come one after the other, so two reflections on one are never on their way at once.
local here = debug.getinfo(1, "S").source:match("^@(.*/)")
dofile(here .. "report.lua")

local requests, at = {}, 0

function init(args)
   wrk.headers["Content-Type"] = "application/json"
   for i, id in ipairs(lines(args[1] .. "/" .. args[3])) do
      requests[i] = wrk.format("POST", "/v1/deployments/" .. id .. "/reflect", nil, '{"force":true}')
   end
end

function request()
   at = at % #requests + 1
   return requests[at]
end
