-- POST /v1/memories: every body is new text. Arguments: the folder of words.txt, a seed and the file of deployments.
require "texts"

local random = math.random
local kinds = { "note", "proposal", "risk_note" }
local deployments

post_texts("/v1/memories", function()
   return {
      '{"kind":"', kinds[random(3)], '","text":"', text(random(20, 40), 2), '","symbol":"S', random(50), '","tags":["topic-', random(50),
      '","market-', random(20), '"],"evidence":["figure-', random(100000), '"],"agent_name":"bench","deployment_id":"',
      deployments[random(#deployments)], '"}',
   }
end)

local init_texts = init
function init(args)
   init_texts(args)
   deployments = lines(args[1] .. "/" .. args[3])
end
