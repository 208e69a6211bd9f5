-- A tick that opens a trade: the first one of a deployment, with a hundred bars for its regime. Arguments: see deployments.lua.
require "deployments"

local function bars()
   local closes = {}
   for i = 1, 100 do
      closes[i] = string.format("%.2f", 65000 + 3 * i + math.random(-5000, 5000) / 100)
   end
   return table.concat(closes, ",")
end

function init(args)
   math.randomseed(tonumber(args[2]))
   post_to_deployments(args, "ticks", function(turn)
      if turn > 1 then
         io.stderr:write("there are no deployments left\n")
         os.exit(1)
      end
      return '{"tick_at":"2024-01-01T00:00:00Z","portfolio":{"equity_usd":10000.37,"positions":['
         .. '{"symbol":"BTC","side":"long","size_base":0.0038,"mark_price":65200.12,"leverage":2}]},'
         .. '"proposed_action":{"kind":"propose_order","symbol":"BTC","reason":"breakout above the prior swing high on volume"},'
         .. '"engine":{"kind":"executed"},"fees":[{"symbol":"BTC","fees_usd":0.12}],"bars":{"BTC":[' .. bars() .. ']}}'
   end)
end
