// Child processes that never outlive the test that started them.
import { spawn } from 'node:child_process';

/** Starts a command that the kernel kills when this process ends. Run as root, it switches to `user`, because PostgreSQL refuses root. */
export function start(command, args, { user, deathSignal = 'KILL', ...options } = {}) {
  const as = user && process.getuid() === 0 ? [`--reuid=${user}`, `--regid=${user}`, '--init-groups'] : [];
  return spawn('setpriv', [...as, '--pdeathsig', deathSignal, '--', command, ...args], { stdio: ['ignore', 'pipe', 'pipe'], ...options });
}

/** Resolves with {code, signal} once the process has ended and its output is read. */
export const ended = (child) => new Promise((resolve) => child.on('close', (code, signal) => resolve({ code, signal })));

/** Runs a command to its end; returns {code, stdout, stderr}. */
export async function run(command, args, options = {}) {
  const child = start(command, args, options);
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (stderr += text));
  const { code, signal } = await ended(child);
  return { code, signal, stdout, stderr };
}

/** How long a test waits for an event that must happen: enough to tell a hang from an overloaded machine. Not an assertion about speed. */
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

/** Waits for an event that must happen; rejects only if it hangs. */
export const eventually = (promise, what) => within(PATIENCE_MS, promise, what);

/** Polls until `probe` returns a truthy value, and returns that value. */
export async function until(probe, what, ms = PATIENCE_MS) {
  const end = Date.now() + ms;
  for (;;) {
    const found = await probe();
    if (found) return found;
    if (Date.now() > end) throw new Error(`${what}: not within ${ms} ms`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
