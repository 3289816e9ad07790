/** Headers of an upstream's answer that go back to the client: what SDKs and the vendors' own clients read of it. */
import { initialsOf } from './head.js';

/** By name, in lower case, whatever the config says. A request id goes back as well, under a name of its own. */
const always = {
  r: ['retry-after', 'retry-after-ms'],
  x: [
    ...['x-should-retry', 'x-client-request-id', 'x-gemini-service-tier'],
    ...['x-codex-turn-state', 'x-models-etag', 'x-reasoning-included'],
  ],
  o: ['openai-processing-ms', 'openai-version', 'openai-model'],
  c: ['cf-ray'],
  i: ['idempotent-replayed'],
} as const;
/** They name our account, which no error may. */
const ofAccount = {
  o: ['openai-organization', 'openai-project'],
  a: ['anthropic-organization-id', 'anthropic-workspace-id'],
} as const;

/** The names that are known, for browsers, which have to be told them. */
export const returnedNames: readonly string[] = [
  ...Object.values(always).flat(),
  ...Object.values(ofAccount).flat(),
];

/** Letters with which the names begin. */
export const returnedInitials = initialsOf('rxaoci');

/**
 * Whether a header goes back as it came.
 * @param name in lower case
 * @param isLimited the gateway has limits of its own to tell of, and those of its own account at the upstream stay here
 * @param isError the answer is told as an error
 */
export function isReturned(name: string, isLimited: boolean, isError: boolean): boolean {
  // Told apart by first letters: looking strings up that were cut a moment ago means hashing every one of them.
  switch (name.charCodeAt(0)) {
    case 0x72:
      return isOf(always.r, name);
    case 0x78: // x
      return (
        isOf(always.x, name) ||
        // Codex is told by these how much of an account's allowance is used.
        (!isLimited && (name.startsWith('x-ratelimit-') || name.startsWith('x-codex-')))
      );
    case 0x61:
      return (!isLimited && name.startsWith('anthropic-ratelimit-')) || (!isError && isOf(ofAccount.a, name));
    case 0x6f:
      return isOf(always.o, name) || (!isError && isOf(ofAccount.o, name));
    case 0x63:
      return isOf(always.c, name);
    case 0x69:
      return isOf(always.i, name);
    default:
      return false;
  }
}

function isOf(names: readonly string[], name: string): boolean {
  for (let at = 0; at < names.length; at++) if (names[at] === name) return true;
  return false;
}
