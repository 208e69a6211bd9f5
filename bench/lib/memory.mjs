// Resident memory of the service: idle, with many open connections, and after load with those still open.
import net from 'node:net';
import { residentBytes } from './cpu.mjs';
import { ready, startDaybook } from './stage.mjs';
import { wrk } from './wrk.mjs';

export const OPEN = 1000;

/** A connection that has made one request and stays open. */
function openConnection(port, path) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, '127.0.0.1', () => socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`));
    socket.closed_by_service = false;
    socket.on('error', reject);
    socket.once('data', (data) =>
      data.toString().startsWith('HTTP/1.1 200 ') ? resolve(socket) : reject(new Error(`memory: ${data}`)),
    );
    socket.on('close', () => (socket.closed_by_service = true));
  });
}

export async function measureMemory(stage, plan) {
  const service = await startDaybook(stage.daybookd, ['--database-url', stage.url], 'ignore');
  const sockets = [];
  try {
    await ready(service);
    const port = Number(new URL(service.base).port);
    const idle = residentBytes(service.pid);
    while (sockets.length < OPEN)
      sockets.push(
        ...(await Promise.all(
          Array.from({ length: 50 }, (_, i) =>
            openConnection(port, `/v1/lessons/${stage.ids[(sockets.length + i) % stage.ids.length]}`),
          ),
        )),
      );
    const open = residentBytes(service.pid);
    for (const kind of ['get', 'list', 'create']) await wrk(stage, service.base, kind, 64, plan.seconds);
    const loaded = residentBytes(service.pid);
    const lost = sockets.filter((socket) => socket.closed_by_service).length;
    if (lost) throw new Error(`memory: the service closed ${lost} of ${OPEN} connections`);
    return { idle, open, loaded };
  } finally {
    for (const socket of sockets) socket.destroy();
    await service.stop();
  }
}
