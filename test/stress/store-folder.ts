import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder for the data of a store. `remove` removes it. */
export function storeFolder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'tasks-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}
