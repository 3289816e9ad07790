import { createHash, randomBytes } from 'node:crypto';

/** Generates a key of 256 random bits, so that storing a fast hash of it is safe. */
export function newKey(): string {
  return `sk-${randomBytes(32).toString('base64url')}`;
}

/** The form in which a config file holds a key: `sha256:` and lower-case hex. */
export function hashKey(key: string): string {
  return `sha256:${createHash('sha256').update(key).digest('hex')}`;
}
