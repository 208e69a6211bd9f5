// Every fault: how it is inflicted, and how it is healed. `inflict` returns the function that heals, or nothing if it heals by itself.
import { connectAndSend } from '../lib/faults.mjs';
import { until } from '../lib/processes.mjs';

const signal = (pids, name) => {
  for (const pid of pids)
    try {
      process.kill(pid, name);
    } catch {} // it has ended in the meantime
};

const oneOf = (world, random) => world.services[Math.floor(random() * world.services.length)];

/** Starts PostgreSQL again unless it has survived. */
const revive = async (world) => {
  if (!world.cluster.isRunning()) await world.cluster.start();
};

export const FAULTS = [
  {
    kind: 'service killed',
    async inflict(world, random) {
      const service = oneOf(world, random);
      await service.kill();
      return service.start;
    },
  },
  {
    kind: 'both services killed',
    async inflict(world) {
      await Promise.all(world.services.map((s) => s.kill()));
      return () => Promise.all(world.services.map((s) => s.start()));
    },
  },
  {
    kind: 'service restarted',
    async inflict(world, random) {
      const service = oneOf(world, random);
      await service.stop();
      return service.start;
    },
  },
  {
    kind: 'service suspended',
    inflict(world, random) {
      const { pid } = oneOf(world, random).process;
      process.kill(pid, 'SIGSTOP');
      return () => process.kill(pid, 'SIGCONT');
    },
  },
  {
    kind: 'PostgreSQL killed',
    async inflict({ cluster }) {
      await cluster.kill();
      return cluster.start;
    },
  },
  {
    kind: 'postmaster killed',
    async inflict({ cluster }) {
      await cluster.kill({ backends: false });
      return cluster.start;
    },
  },
  {
    kind: 'backend killed',
    async inflict(world, random) {
      const rows = await world.query("SELECT pid FROM pg_stat_activity WHERE application_name = 'daybookd'").catch(() => []);
      if (rows.length) signal([rows[Math.floor(random() * rows.length)].pid], 'SIGKILL');
    },
  },
  {
    kind: 'PostgreSQL suspended',
    inflict(world) {
      const pids = world.postgres();
      signal(pids, 'SIGSTOP');
      return () => signal(pids, 'SIGCONT');
    },
  },
  {
    kind: 'service and PostgreSQL killed',
    async inflict(world, random) {
      const service = oneOf(world, random);
      await Promise.all([service.kill(), world.cluster.kill()]);
      return () => Promise.all([world.cluster.start(), service.start()]);
    },
  },
  {
    kind: 'clients cut',
    inflict({ services }) {
      for (const s of services) s.proxy.cut();
      return () => services.forEach((s) => s.proxy.mend());
    },
  },
  {
    kind: 'database connections cut',
    inflict({ toDatabase }) {
      toDatabase.cut();
      return toDatabase.mend;
    },
  },
  {
    kind: 'disk of PostgreSQL full',
    unless: ({ disk }) => !disk && 'nothing may be mounted here',
    async inflict(world) {
      await world.disk.fill();
      return async () => {
        await world.disk.free();
        await revive(world);
      };
    },
  },
  {
    kind: 'disk of bulk bodies full',
    unless: ({ spoolDisk }) => !spoolDisk && 'nothing may be mounted here',
    async inflict({ spoolDisk }) {
      await spoolDisk.fill();
      return spoolDisk.free;
    },
  },
  {
    kind: 'room for bulk bodies full',
    async inflict({ services, bulkBytes }) {
      const head = `POST /v1/episodic/bulk HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nContent-Length: ${bulkBytes}\r\n\r\n`;
      const sockets = await Promise.all(services.map((s) => connectAndSend(s.process.port, head)));
      for (const socket of sockets) socket.write(Buffer.alloc(bulkBytes - 1, '\n'));
      await until(() => sockets.every((socket) => socket.writableLength === 0 || socket.destroyed), 'the bodies are written');
      return () => sockets.forEach((socket) => socket.destroy());
    },
  },
];
