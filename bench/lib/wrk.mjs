// wrk with one thread, and what it reports.
import { fileURLToPath } from 'node:url';
import { run } from '../../tests/lib/processes.mjs';

const SCRIPTS = fileURLToPath(new URL('../wrk/', import.meta.url));
const env = { ...process.env, LUA_PATH: `${SCRIPTS}?.lua` }; // for the modules that scripts share

let seed = 1; // a new one for every run, so that no two send the same bodies

/**
 * Runs wrk with one kind of request: {requests, failed, refused, seconds, p50, p99 (µs)}. Failed requests, rejected or lost, are not
 * counted in `requests`. `more` are further arguments of the script.
 */
export async function wrk(stage, base, kind, connections, seconds, more = []) {
  const args = [
    '-t1',
    `-c${connections}`,
    `-d${seconds}s`,
    '--timeout',
    '10s',
    '-s',
    `${SCRIPTS}${kind}.lua`,
    base,
    '--',
    stage.folder,
    String(seed++),
    ...more,
  ];
  const { code, stdout, stderr } = await run('wrk', args, { env });
  const line = stdout.match(/^\{.*\}$/m);
  if (code !== 0 || !line) throw new Error(`wrk ${kind}: ${stdout}${stderr}`);
  const { answered, refused, lost, us, p50, p99 } = JSON.parse(line[0]);
  if (answered === refused) throw new Error(`wrk ${kind}: no request was served:\n${stdout}`);
  return { requests: answered - refused, failed: refused + lost, refused, seconds: us / 1e6, p50, p99 };
}
