-- A tick in which the marks of three positions move. Arguments: see deployments.lua; a later seed is a later time. lib/ledger.mjs posts the same.
require "deployments"

local BEGIN = 1704067200 -- 2024-01-01, when the positions were opened
local TURNS = 1000 -- seconds for each seed

local function position(symbol, side, size, price)
   return string.format('{"symbol":"%s","side":"%s","size_base":%s,"mark_price":%.2f}', symbol, side, size,
      price * (1 + math.random(-1000, 1000) / 1e5))
end

function init(args)
   local seed = tonumber(args[2])
   math.randomseed(seed)
   post_to_deployments(args, "ticks", function(turn)
      return '{"tick_at":"' .. os.date("!%Y-%m-%dT%H:%M:%SZ", BEGIN + TURNS * seed + turn) .. '","portfolio":{"equity_usd":10000.37,"positions":['
         .. position("BTC", "long", "0.0038", 65200.12) .. ',' .. position("ETH", "short", "0.0586", 3410.5) .. ','
         .. position("SOL", "long", "1.61", 155.25) .. ']},"proposed_action":{"kind":"hold","reason":"the trend is intact"},"engine":{"kind":"none"}}'
   end)
end
