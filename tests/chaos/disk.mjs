// A file system in memory that can be filled up at once. It needs root; ./test gives the suite its own mount namespace, so that
// nothing stays mounted.
import { mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../lib/processes.mjs';

/** Returns {folder, fill, free, close}, or null where nothing may be mounted. */
export async function mountDisk(size) {
  const folder = mkdtempSync(join(tmpdir(), `dbk-${process.pid}-disk-`));
  const { code } = await run('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=1777`, 'daybook-chaos', folder]);
  if (code !== 0) {
    rmSync(folder, { recursive: true });
    return null;
  }
  const resize = async (bytes) => (await run('mount', ['-o', `remount,size=${bytes}`, folder])).code === 0;
  return {
    folder,
    /** Shrinks the file system to what is used; another write can come in between. */
    async fill() {
      for (let tries = 0; tries < 20; tries++) {
        const { blocks, bfree, bsize } = statfsSync(folder);
        if (await resize((blocks - bfree) * bsize)) return;
      }
      throw new Error(`${folder} cannot be filled`);
    },
    free: () => resize(size),
    async close() {
      await run('umount', ['--lazy', folder]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
