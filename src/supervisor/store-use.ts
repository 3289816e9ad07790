import { createHash, randomUUID } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { createServer } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { abstractNames, innerPidOf } from './take-over.js';

interface StoreUse {
  /** Process ids of the other gateways that use the store. */
  readonly others: readonly number[];
  /** Ends the announcement. So does the end of the process. */
  end(): void;
}

/**
 * Announces to other gateways that this one uses an embedded store, by a name in the kernel's abstract namespace (unix(7)),
 * which ends with its process. Without such a namespace, and between containers with networks of their own, no other is
 * found.
 * @param folder absolute path of the store, which need not exist yet
 * @param predecessor id of the process that this one replaces, which is no other
 */
export function announceStoreUse(folder: string, predecessor: number | null): Promise<StoreUse> {
  const prefix = `model-gateway/store/${createHash('sha256').update(realPath(folder)).digest('base64url')}/`;
  // Containers that share a network may have the same process id.
  const name = `${prefix}${process.pid}-${randomUUID().slice(0, 8)}`;
  const replaced = predecessor === null ? null : innerPidOf(predecessor);
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy());
    const tell = (): void => {
      const others = abstractNames()
        .filter((each) => each.name.startsWith(prefix) && each.name !== name)
        .map((each) => Number.parseInt(each.name.slice(prefix.length), 10));
      resolve({ others: others.filter((pid) => pid !== replaced), end: () => server.close() });
    };
    server.once('error', tell);
    server.listen(`\0${name}`, () => {
      server.unref();
      tell();
    });
  });
}

/** Path without symbolic links, as far as it exists. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(realPath(parent), basename(path));
  }
}
