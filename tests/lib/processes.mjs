// Child processes that never outlive the test that started them.
import { spawn } from 'node:child_process';

/** Starts a command that the kernel ends with this process. `user` is taken on when root runs the tests; PostgreSQL refuses root. */
export function start(command, args, { user, deathSignal = 'KILL', ...options } = {}) {
  const as = user && process.getuid() === 0 ? [`--reuid=${user}`, `--regid=${user}`, '--init-groups'] : [];
  return spawn('setpriv', [...as, '--pdeathsig', deathSignal, '--', command, ...args], { stdio: ['ignore', 'pipe', 'pipe'], ...options });
}

/** Resolves with {code, signal} when the process has ended and its output is read. */
export const ended = (child) => new Promise((resolve) => child.on('close', (code, signal) => resolve({ code, signal })));

/** Runs a command to its end and gives {code, stdout, stderr}. */
export async function run(command, args, options = {}) {
  const child = start(command, args, options);
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (stderr += text));
  const { code, signal } = await ended(child);
  return { code, signal, stdout, stderr };
}

/** How long a test waits for what must happen. It tells a hang from an overloaded machine and asserts nothing about speed. */
export const PATIENCE_MS = 120_000;

/** Rejects when `promise` takes longer than `ms`. */
export async function within(ms, promise, what) {
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error(`${what}: not within ${ms} ms`)), ms)));
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits for what must happen, however busy the machine is; rejects only when it hangs. */
export const eventually = (promise, what) => within(PATIENCE_MS, promise, what);

/** Asks again and again until `probe` gives something true, and gives that. */
export async function until(probe, what, ms = PATIENCE_MS) {
  const end = Date.now() + ms;
  for (;;) {
    const found = await probe();
    if (found) return found;
    if (Date.now() > end) throw new Error(`${what}: not within ${ms} ms`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
