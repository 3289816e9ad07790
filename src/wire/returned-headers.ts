/** Headers of an upstream's answer that go back to the client: what SDKs and the vendors' own clients read of it. */
import { initialsOf } from './head.js';

/**
 * By name, in lower case, whatever the config says. A request id goes back as well, under a name of its own. Those that
 * name the account at the upstream (`openai-organization` and its like) are not among them: it is the operator's, and no
 * client's to know.
 */
const names = {
  r: ['retry-after', 'retry-after-ms'],
  x: [
    ...['x-should-retry', 'x-client-request-id', 'x-gemini-service-tier'],
    ...['x-codex-turn-state', 'x-models-etag', 'x-reasoning-included'],
  ],
  o: ['openai-processing-ms', 'openai-version', 'openai-model'],
  c: ['cf-ray'],
  i: ['idempotent-replayed'],
} as const;

/** The names that are known, for browsers, which have to be told them. */
export const returnedNames: readonly string[] = Object.values(names).flat();

/** Letters with which the names begin. */
export const returnedInitials = initialsOf('rxaoci');

/**
 * Whether a header goes back as it came.
 * @param name in lower case
 * @param isLimited the gateway has limits of its own to tell of, and those of its own account at the upstream stay here
 */
export function isReturned(name: string, isLimited: boolean): boolean {
  // Told apart by first letters: looking strings up that were cut a moment ago means hashing every one of them.
  switch (name.charCodeAt(0)) {
    case 0x72:
      return isOf(names.r, name);
    case 0x78: // x
      return (
        isOf(names.x, name) ||
        // Codex is told by these how much of an account's allowance is used.
        (!isLimited && (name.startsWith('x-ratelimit-') || name.startsWith('x-codex-')))
      );
    case 0x61:
      return !isLimited && name.startsWith('anthropic-ratelimit-');
    case 0x6f:
      return isOf(names.o, name);
    case 0x63:
      return isOf(names.c, name);
    case 0x69:
      return isOf(names.i, name);
    default:
      return false;
  }
}

function isOf(some: readonly string[], name: string): boolean {
  for (let at = 0; at < some.length; at++) if (some[at] === name) return true;
  return false;
}
