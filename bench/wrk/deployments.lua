-- Shared by the scripts that post to deployments: goes through the deployments of a file in turn. There are far more of them than connections,
-- so two posts to one deployment are never in flight together.
require "report"

local heads, tail, body_of, body = {}, nil, nil, nil
local turn, at = 0, 0

-- args: the working folder, a seed and the name of the file. `make(turn)` returns the body for all deployments of a turn.
function post_to_deployments(args, what, make)
   body_of = make
   for i, id in ipairs(lines(args[1] .. "/" .. args[3])) do
      heads[i], tail = cut_post("/v1/deployments/" .. id .. "/" .. what)
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
