/**
 * Headers of a client that go on to upstreams: names in lower case, by whom they tell something. As the vendors' own
 * clients send them: the SDKs of OpenAI and Anthropic (both made by Stainless), of Google (`x-goog-*`), Codex, Claude
 * Code, Gemini CLI, and what OpenRouter reads of an app (https://openrouter.ai/docs/app-attribution).
 */

/** Whom a header is for: the upstreams of one vendor's protocols, or those of both that have the same kind of SDK. */
export type HeaderReader = 'shared' | 'openai' | 'anthropic' | 'google';

/** Every upstream gets these. */
export const forwardedNames = ['accept', 'user-agent', 'traceparent', 'tracestate', 'baggage'];

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
