-- What the kinds of ticks share: the deployments of a file are posted to one after the other, all of them before the first one comes again.
-- They are far more than there are connections, so two ticks of one deployment are never on their way at once.
local here = debug.getinfo(1, "S").source:match("^@(.*/)")
dofile(here .. "report.lua")

local heads, tail, body_of, body = {}, nil, nil, nil
local turn, at = 0, 0

-- args: the bench's folder, a seed and the name of the file; `make(turn)` gives the body for all deployments of a turn.
function ticks_init(args, make)
   body_of = make
   wrk.headers["Content-Type"] = "application/json"
   for i, id in ipairs(lines(args[1] .. "/" .. args[3])) do
      -- What wrk.format makes, cut where the length and the body go.
      heads[i], tail = wrk.format("POST", "/v1/deployments/" .. id .. "/ticks", nil, "x"):match("^(.*Content%-Length: )1(\r\n.*)x$")
   end
end

function request()
   at = at % #heads + 1
   if at == 1 then
      turn = turn + 1
      local text = body_of(turn)
      body = #text .. tail .. text
   end
   return heads[at] .. body
end
