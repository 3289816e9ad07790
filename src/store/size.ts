import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { StoreSettings } from '../config/types.js';

/** Bytes of a block as the system counts them (stat(2)). */
const blockBytes = 512;

/**
 * Measures how much of the disk an embedded store takes. Its files are sparse: only written blocks count.
 * @returns bytes; null for a store of another kind, or one that cannot be read
 */
export async function storedBytes(settings: StoreSettings): Promise<number | null> {
  if (settings.kind !== 'embedded') return null;
  try {
    const entries = await readdir(settings.path, { recursive: true });
    const sizes = await Promise.all(entries.map((entry) => stat(join(settings.path, entry))));
    return sizes.reduce((sum, { blocks }) => sum + blocks * blockBytes, 0);
  } catch {
    // Nothing was stored yet, or a file was removed after it was listed.
    return null;
  }
}
