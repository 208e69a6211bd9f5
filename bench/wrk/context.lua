-- GET /v1/deployments/{id}/context: arguments are the working folder, a seed and the deployment.
require "report"

function init(args)
   wrk.path = "/v1/deployments/" .. args[3] .. "/context"
end
