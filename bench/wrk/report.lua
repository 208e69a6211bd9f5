-- Prints the results of wrk as one line of JSON.
function done(summary, latency)
   local e = summary.errors
   io.write(string.format('{"answered":%d,"refused":%d,"lost":%d,"us":%d,"p50":%d,"p99":%d}\n', summary.requests, e.status,
      e.connect + e.read + e.write + e.timeout, summary.duration, latency:percentile(50), latency:percentile(99)))
end

-- The lines of a file.
function lines(path)
   local all = {}
   for line in io.lines(path) do
      all[#all + 1] = line
   end
   return all
end

-- A POST of JSON from wrk.format, split where the length and the body go.
function cut_post(path)
   wrk.headers["Content-Type"] = "application/json"
   return wrk.format("POST", path, nil, "x"):match("^(.*Content%-Length: )1(\r\n.*)x$")
end
