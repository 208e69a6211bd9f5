-- GET /v1/lessons?limit=10
local here = debug.getinfo(1, "S").source:match("^@(.*/)")
dofile(here .. "report.lua")

local request_text

function init()
   request_text = wrk.format("GET", "/v1/lessons?limit=10")
end

function request()
   return request_text
end
