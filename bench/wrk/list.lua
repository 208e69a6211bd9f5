-- GET /v1/lessons?limit=10
require "report"

wrk.path = "/v1/lessons?limit=10"
