-- POST /v1/episodic: every body is new text, which the service embeds.
require "texts"

local random = math.random

post_texts("/v1/episodic", function()
   return {
      '{"ticker":"T', random(500), '","task_type":"task_', random(20), '","question":"', text(10, 1), '","answer":"', text(25, 1),
      '","probability":0.', random(99), "}",
   }
end)
