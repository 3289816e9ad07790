import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder for the data of a store, removed by `remove`. */
export function storeFolder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'tasks-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}
