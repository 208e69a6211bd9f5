// Certificates for the tests of TLS, made with openssl.
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from './processes.mjs';

async function openssl(...args) {
  const { code, stderr } = await run('openssl', args);
  assert.equal(code, 0, stderr);
}

const EC = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

/** A folder for certificates: `close()` removes it. */
export async function certificates() {
  const folder = await mkdtemp(join(tmpdir(), 'daybook-tls-'));
  const at = (name) => join(folder, name);
  return {
    folder,
    at,
    close: () => rm(folder, { recursive: true, force: true }),

    /** A self-signed certificate for localhost: {cert, key}, its files. */
    async selfSigned(name, { days = 365, extensions = [] } = {}) {
      const pair = { cert: at(`${name}.pem`), key: at(`${name}.key`) };
      const more = ['subjectAltName=DNS:localhost,IP:127.0.0.1', ...extensions].flatMap((text) => ['-addext', text]);
      await openssl('req', '-x509', ...EC, '-days', String(days), '-subj', `/CN=${name}`, ...more, '-keyout', pair.key, '-out', pair.cert);
      return pair;
    },

    /** One that expired a day ago. */
    async expired(name) {
      const pair = { cert: at(`${name}.pem`), key: at(`${name}.key`) };
      await openssl('req', '-new', ...EC, '-subj', `/CN=${name}`, '-keyout', pair.key, '-out', at(`${name}.csr`));
      await openssl('x509', '-req', '-in', at(`${name}.csr`), '-signkey', pair.key, '-days', '-1', '-out', pair.cert);
      return pair;
    },
  };
}

export const options = ({ cert, key }) => ['--tls-cert', cert, '--tls-key', key];
