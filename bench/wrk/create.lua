-- POST /v1/lessons: every body is new text, like that of lib/texts.mjs.
require "texts"

local random = math.random

post_texts("/v1/lessons", function()
   return {
      '{"takeaway":"', text(random(8, 14), 2), '","context":"', text(random(15, 35), 2), '","outcome":"', text(random(10, 25), 2),
      '","tags":["topic-', random(50), '","market-', random(20), '"],"evidence":["decision-', random(100000),
      '","episode-', random(100000), '"]}',
   }
end)
