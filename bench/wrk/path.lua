-- GET of one path: arguments are the working folder, a seed and the path.
require "report"

function init(args)
   wrk.path = args[3]
end
