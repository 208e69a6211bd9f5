// Raw bytes to the service, and everything that it answers.
import net from 'node:net';
import { eventually } from './processes.mjs';

/**
 * Sends the bytes, all at once or one by one, and returns everything until the server closes. `connect` opens the socket.
 * A write after the server closed destroys the socket before its answer is read, so it is sent again.
 */
export async function sendRaw(port, bytes, options) {
  for (let tries = 5; ; tries--)
    try {
      return await sendOnce(port, bytes, options);
    } catch (error) {
      if (error.code !== 'EPIPE' || tries === 1) throw error;
    }
}

function sendOnce(port, bytes, { slowly = false, connect = () => net.connect(port, '127.0.0.1') } = {}) {
  return eventually(
    new Promise((resolve, reject) => {
      const socket = connect();
      const chunks = [];
      socket.setNoDelay(true);
      socket.on('data', (chunk) => chunks.push(chunk));
      socket.on('error', (error) => chunks.length || reject(error)); // a client that is still writing
      socket.on('close', () => resolve(Buffer.concat(chunks).toString('latin1')));
      const data = Buffer.from(bytes, 'latin1');
      if (!slowly) return socket.write(data);
      const next = (at) => {
        if (at < data.length && !socket.destroyed) socket.write(data.subarray(at, at + 1), () => setImmediate(next, at + 1));
      };
      next(0);
    }),
    'the connection is closed',
  );
}

/** The statuses of all responses in the bytes. */
export const statusesOf = (text) => (text.match(/HTTP\/1\.[01] \d\d\d(?= [A-Z])/g) ?? []).map((line) => Number(line.slice(-3)));
