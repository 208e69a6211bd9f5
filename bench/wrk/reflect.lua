-- POST /v1/deployments/{id}/reflect. Arguments: see deployments.lua.
require "deployments"

function init(args)
   post_to_deployments(args, "reflect", function()
      return '{"force":true}'
   end)
end
