// A TCP proxy whose connections can be cut with a reset.
import { once } from 'node:events';
import net from 'node:net';

/** A socket of the file system cannot be reset. */
const reset = (socket) => (socket.remotePort ? socket.resetAndDestroy() : socket.destroy());

/** Forwards to `target()`: the options of net.connect, or null while there is nobody. */
export async function startProxy(target) {
  const sockets = new Set();
  let passes = true;

  const add = (socket) => {
    sockets.add(socket);
    socket.setNoDelay(true).on('error', () => {}).on('close', () => sockets.delete(socket));
    return socket;
  };
  const server = net.createServer((client) => {
    add(client);
    const to = passes && target();
    if (!to) return reset(client);
    const upstream = add(net.connect(to));
    for (const [from, into] of [[client, upstream], [upstream, client]])
      from.on('data', (chunk) => into.write(chunk) || (from.pause(), into.once('drain', () => from.resume())))
        .on('end', () => into.end())
        .on('close', () => reset(into));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  const resetAll = () => sockets.forEach(reset);
  return {
    port: server.address().port,
    /** Resets every connection, and new ones until `mend()`. */
    cut: () => ((passes = false), resetAll()),
    mend: () => (passes = true),
    reset: resetAll,
    close: () => (server.close(), resetAll()),
  };
}
