// The test machine: enough to judge the numbers, nothing that identifies its owner.
import { readFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { run } from '../../tests/lib/processes.mjs';
import { residentFileSystem } from './stage.mjs';

const first = (text) => text.split('\n')[0].trim();

export async function machine(stage) {
  const os = readFileSync('/etc/os-release', 'utf8').match(/^PRETTY_NAME="?(.*?)"?$/m)?.[1] ?? 'Linux';
  const [{ version }] = await stage.query("select split_part(version(), ' on ', 1) as version");
  const wrk = await run('wrk', ['--version']);
  const daybook = await run(stage.daybookd, ['--version']);
  const { dependencies } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  return [
    `${cpus()[0].model}, ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GB of memory, data on ${residentFileSystem(stage.folder)}`,
    `${os}, Linux ${release()}, ${version}`,
    `${first(daybook.stdout)}; ${first(wrk.stdout).split(' ').slice(0, 2).join(' ')}; Node ${process.version}, Fastify ${dependencies.fastify}, pg ${dependencies.pg}`,
  ];
}
