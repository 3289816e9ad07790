import { initialsOf } from './head.js';

/*
 * Headers that pass through the gateway, by their names in lower case: a client's go on to upstreams, and some of an
 * upstream's answer back to the client.
 */

/** Whom a header is for: the upstreams of one vendor's protocols, or those of both that have the same kind of SDK. */
export type HeaderReader = 'shared' | 'openai' | 'anthropic' | 'google';

/** Every upstream gets these. */
export const forwardedNames = ['accept', 'user-agent', 'traceparent', 'tracestate', 'baggage'];

/**
 * What the vendors' own clients send: the SDKs of OpenAI and Anthropic (both made by Stainless), of Google (`x-goog-*`),
 * Codex, Claude Code, Gemini CLI, and what OpenRouter reads of an app (https://openrouter.ai/docs/app-attribution).
 */
const namesOf: Readonly<Record<HeaderReader, readonly string[]>> = {
  shared: [
    ...['lang', 'package-version', 'os', 'arch', 'runtime', 'runtime-version', 'retry-count', 'timeout'].map(
      (name) => `x-stainless-${name}`,
    ),
    ...['x-client-request-id', 'x-session-id', 'x-session-affinity', 'x-initiator'],
    ...['referer', 'http-referer', 'x-title'],
  ],
  openai: [
    ...['session_id', 'session-id', 'conversation_id', 'conversation-id', 'thread_id', 'thread-id'],
    ...['originator', 'version', 'x-openai-subagent', 'x-grok-conv-id'],
    ...['x-codex-turn-metadata', 'x-codex-turn-state', 'x-codex-beta-features', 'x-codex-window-id'],
    ...['x-openrouter-title', 'x-openrouter-categories'],
  ],
  anthropic: [
    ...['x-app', 'x-claude-code-session-id', 'x-claude-code-agent-id'],
    ...['x-claude-remote-session-id', 'x-claude-remote-container-id'],
  ],
  google: [
    // Not `x-goog-request-params`: it repeats the model of the path by the client's name for it.
    ...['x-goog-api-client', 'x-server-timeout', 'x-gemini-api-privileged-user-id'],
  ],
};

const readers: ReadonlyMap<string, HeaderReader> = new Map(
  (Object.keys(namesOf) as HeaderReader[]).flatMap((reader) =>
    namesOf[reader].map((name) => [name, reader] as const),
  ),
);

/** All of them by name, without those that are told by how they begin. */
export const listedHeaders: Iterable<readonly [name: string, reader: HeaderReader]> = readers;

const letterC = 0x63;
const letterS = 0x73;

/** Whom a header is for that is told by how its name begins; null for any other. */
export function readerByBeginning(name: string): HeaderReader | null {
  // Looked at for each header that nothing else is known of.
  const third = name.charCodeAt(2);
  if (third === letterS) return name.startsWith('x-stainless-') ? 'shared' : null;
  return third === letterC && name.startsWith('x-codex-') ? 'openai' : null;
}

/** Whom a header is for, or null for one that only those get whose config names it. */
export function readerOf(name: string): HeaderReader | null {
  return readers.get(name) ?? readerByBeginning(name);
}

/** Whether some upstream gets a client's header of that name without being told to in the config. */
export function isForwarded(name: string): boolean {
  return forwardedNames.includes(name) || readerOf(name) !== null;
}

/**
 * Headers that name an account, which an upstream refuses beside a key of another one. They pass only where the config
 * names them.
 */
const accountHeaders: ReadonlySet<string> = new Set([
  ...['openai-organization', 'openai-project', 'chatgpt-account-id'],
  ...['anthropic-organization-id', 'anthropic-workspace-id'],
  'x-goog-user-project',
]);

/** Whether a client's header names an account at an upstream. */
export function namesAccount(name: string): boolean {
  return accountHeaders.has(name);
}

/**
 * Headers of an upstream's answer that go back to the client whatever the config says, by their first letters: what SDKs
 * and the vendors' own clients read of it. A request id goes back as well, under a name of its own. Those that name the
 * account at the upstream (`openai-organization` and its like) are not among them: it is the operator's, and no client's
 * to know.
 */
const returned = {
  r: ['retry-after', 'retry-after-ms'],
  x: [
    ...['x-should-retry', 'x-client-request-id', 'x-gemini-service-tier'],
    ...['x-codex-turn-state', 'x-models-etag', 'x-reasoning-included'],
  ],
  o: ['openai-processing-ms', 'openai-version', 'openai-model'],
  c: ['cf-ray'],
  i: ['idempotent-replayed'],
} as const;

/** Those that are known by name, for browsers, which have to be told them. */
export const returnedNames: readonly string[] = Object.values(returned).flat();

/** The first letters of all that go back. */
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
      return isOf(returned.r, name);
    case 0x78: // x
      return (
        isOf(returned.x, name) ||
        // Codex is told by these how much of an account's allowance is used.
        (!isLimited && (name.startsWith('x-ratelimit-') || name.startsWith('x-codex-')))
      );
    case 0x61:
      return !isLimited && name.startsWith('anthropic-ratelimit-');
    case 0x6f:
      return isOf(returned.o, name);
    case 0x63:
      return isOf(returned.c, name);
    case 0x69:
      return isOf(returned.i, name);
    default:
      return false;
  }
}

function isOf(some: readonly string[], name: string): boolean {
  for (let at = 0; at < some.length; at++) if (some[at] === name) return true;
  return false;
}
