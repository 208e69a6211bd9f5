// The service under test: started on a free port, checked for sanitizer reports, always stopped.
import assert from 'node:assert/strict';
import { ended, eventually, run, start } from './processes.mjs';
import { daybookd } from './paths.mjs';

const SANITIZER = /^.*(?:ERROR: (?:Address|Leak|Memory|Thread)Sanitizer|: runtime error: ).*$/m;

/** The caller's environment without Daybook settings. */
function cleanEnvironment(extra) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('DAYBOOK_')));
  return { ASAN_OPTIONS: 'exitcode=99', UBSAN_OPTIONS: 'exitcode=99:halt_on_error=1:print_stacktrace=1', ...env, ...extra };
}

/** Fails with the sanitizer's report, if there is one. */
function assertSane(stderr) {
  const found = stderr.match(SANITIZER);
  assert.ok(!found, `sanitizer report:\n${found && stderr.slice(found.index, found.index + 4000)}`);
}

/** Runs a daybookd command to its end: {code, stdout, stderr}. */
export async function command(args, { env = {}, binary = daybookd() } = {}) {
  const result = await eventually(run(binary, args, { env: cleanEnvironment(env) }), `daybookd ${args[0]}`);
  assertSane(result.stderr);
  return result;
}

/** Creates a key with that owner and role: {key, id}. */
export async function createKey(databaseUrl, owner, role, name) {
  const label = name ? ['--name', name] : [];
  const { code, stdout, stderr } = await command([
    'key',
    'create',
    '--owner',
    owner,
    '--role',
    role,
    ...label,
    '--database-url',
    databaseUrl,
  ]);
  assert.equal(code, 0, stderr);
  const id = stderr.match(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/)?.[0];
  assert.ok(id, `no id in: ${stderr}`);
  return { key: stdout.trimEnd(), id };
}

/** Starts `daybookd serve` and waits for its address. Throws with its output if it exits instead. `wrapper`: words of a command that executes it. */
export async function startService(databaseUrl, { args = [], env = {}, listen = '127.0.0.1:0', binary = daybookd(), wrapper = [] } = {}) {
  const [program, ...words] = [...wrapper, binary, 'serve', '--listen', listen, '--database-url', databaseUrl, ...args];
  const child = start(program, words, { env: cleanEnvironment(env) });
  const end = ended(child);
  const service = { child, pid: child.pid, stdout: '', log: '', ended: end };
  child.stderr.setEncoding('utf8').on('data', (text) => (service.log += text));

  const listening = new Promise((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (text) => {
      service.stdout += text;
      const line = service.stdout.match(/^daybook listening on (https?:\/\/\S+)$/m);
      if (line) resolve(line[1]);
    });
  });
  const base = await eventually(Promise.race([listening, end.then(() => null)]), 'the service listens').catch((error) => {
    child.kill('SIGKILL');
    throw error;
  });
  if (!base) {
    assertSane(service.log);
    throw new Error(`daybookd ended with ${child.exitCode}: ${service.log}`);
  }

  return Object.assign(service, {
    base,
    port: Number(new URL(base).port),

    /** SIGTERM; the service must exit with `code`. */
    async stop({ code = 0 } = {}) {
      child.kill('SIGTERM');
      const result = await eventually(end, 'the service stops').catch((error) => {
        child.kill('SIGKILL');
        throw new Error(`${error.message}; its log ends with: ${service.log.slice(-2000)}`);
      });
      assertSane(service.log);
      assert.deepEqual(result, { code, signal: null }, service.log.slice(-2000));
    },

    /** kill -9. */
    async kill() {
      child.kill('SIGKILL');
      await end;
      assertSane(service.log);
    },
  });
}
