import type { OwnSecrets } from './types.js';

/** Shorter values are words. */
const leastSecret = 8;
const keyHeader = /auth|key|token|secret|pass|cookie|credential|signature/i;
const scheme = /^[\w-]+ +/;

/** Makes a list of an upstream's secrets, by its keys and by the headers that are sent to it. */
export function ownSecrets(
  apiKeys: readonly string[],
  headers: readonly (readonly [string, string])[],
): OwnSecrets {
  const keys: string[] = [...apiKeys];
  const others: string[] = [];
  for (const [name, value] of headers) {
    if (keyHeader.test(name)) keys.push(value, value.replace(scheme, ''));
    else others.push(value);
  }
  const isSecret = (value: string): boolean => value.length >= leastSecret;
  return { keys: keys.filter(isSecret), others: others.filter(isSecret) };
}
