-- GET /v1/deployments/{id}/context: the arguments are the bench's folder, a seed and the deployment.
local here = debug.getinfo(1, "S").source:match("^@(.*/)")
dofile(here .. "report.lua")

local request_text

function init(args)
   request_text = wrk.format("GET", "/v1/deployments/" .. args[3] .. "/context")
end

function request()
   return request_text
end
