// CPU time of processes, from /proc.
import { readdirSync, readFileSync } from 'node:fs';

const TICK_US = 10_000; // USER_HZ is 100 on every Linux that Debian runs on

function stat(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    return { parent: fields[1], own: (fields[11] + fields[12]) * TICK_US, waited: (fields[13] + fields[14]) * TICK_US };
  } catch {
    return null; // it has ended
  }
}

/** µs of a process and all its children, including ended ones that their parent has waited for. */
export function treeUs(pid) {
  let us = 0;
  for (const name of readdirSync('/proc')) {
    const found = /^\d+$/.test(name) && stat(name);
    if (!found) continue;
    if (Number(name) === pid) us += found.own + found.waited;
    else if (found.parent === pid) us += found.own;
  }
  return us;
}

/** µs of one process with all its threads, without its children. */
export const processUs = (pid) => stat(pid)?.own ?? 0;

/** µs of the ended children of this process: the load generators. */
export const endedChildrenUs = () => stat('self').waited;

/** µs of all processors: busy, and stolen by the hypervisor. */
export function machineUs() {
  const [user, nice, system, , , irq, softirq, steal] = readFileSync('/proc/stat', 'utf8')
    .split('\n')[0]
    .split(/\s+/)
    .slice(1)
    .map((n) => n * TICK_US);
  return { busy: user + nice + system + irq + softirq, steal };
}

/** Resident memory of a process in bytes. */
export const residentBytes = (pid) =>
  Number(readFileSync(`/proc/${pid}/status`, 'utf8').match(/^VmRSS:\s+(\d+) kB$/m)[1]) * 1024;
