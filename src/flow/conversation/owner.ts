import type { Key } from '../../config/types.js';

/** Whose records a call may read, and makes. */
export function ownerOf(key: Key): string {
  return key.id;
}
