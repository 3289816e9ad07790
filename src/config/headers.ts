/** RFC 9110 section 5.6.2. */
export const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** Headers that the gateway writes itself, with the reason. */
export const refusedHeaders: ReadonlyMap<string, string> = new Map([
  ...['content-length', 'transfer-encoding', 'trailer', 'te', 'expect'].map(
    (name) => [name, 'it frames the message, which the gateway does'] as const,
  ),
  ...['connection', 'keep-alive', 'proxy-connection', 'upgrade'].map(
    (name) => [name, 'it belongs to one connection, which the gateway manages'] as const,
  ),
  ...['host', 'content-type', 'content-encoding', 'accept-encoding', 'x-request-id'].map(
    (name) => [name, 'the gateway sets it for each request'] as const,
  ),
  ...[
    'authorization',
    'proxy-authorization',
    'x-api-key',
    'x-goog-api-key',
    'x-vendorg-api-key',
    'cookie',
  ].map((name) => [name, 'it carries a credential; put it into apiKeys'] as const),
]);

/** Headers that concern only the gateway and its client. They are not sent to an upstream. */
const ownHeaders: ReadonlySet<string> = new Set([
  ...['origin', 'range', 'if-range', 'if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since'],
  ...['forwarded', 'x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-real-ip', 'via'],
  ...['access-control-request-method', 'access-control-request-headers', 'cdn-loop'],
]);
const ownBeginnings = ['sec-', 'x-gateway-', 'proxy-'];
/** A name like that of a credential is treated as one. */
const credential = /auth|api-?key|token|secret|cookie|credential|signature|password/;

/**
 * Whether a query parameter has a name like that of a credential.
 * @param name in lower case
 */
export function isCredential(name: string): boolean {
  return /key$|^(?:code|sig)$/.test(name) || credential.test(name);
}

const ofVendor: ReadonlySet<string> = new Set([
  'anthropic-beta',
  'anthropic-version',
  'vendorc-beta',
  'vendorc-version',
  'openai-beta',
]);

/** Response headers that belong to the gateway's own message, its connection or its page. */
const ofOwnAnswer: ReadonlySet<string> = new Set([
  ...['cache-control', 'content-range', 'accept-ranges', 'etag', 'date', 'vary', 'allow', 'location'],
  ...['x-accel-buffering', 'x-upstream-request-id', 'server-timing', 'strict-transport-security', 'alt-svc'],
  ...['clear-site-data', 'content-security-policy', 'refresh'],
]);
const ofOwnLimits = ['x-ratelimit-', 'anthropic-ratelimit-'];
const ownAnswers = ['access-control-', ...ownBeginnings];
/** Like `credential`, except for names that contain `token` before their end: those report counts of tokens. */
const answeredCredential = /auth|api-?key|token$|secret|cookie|credential|signature|password/;

/**
 * Returns why an upstream's response header may not be passed to the client, or null.
 * @param name in lower case
 */
export function returnHeaderProblem(name: string): string | null {
  const refused = refusedHeaders.get(name);
  if (refused !== undefined) return refused.split(';', 1)[0] ?? refused;
  if (ofOwnAnswer.has(name) || ownAnswers.some((beginning) => name.startsWith(beginning)))
    return 'it is between the client and the gateway';
  if (ofOwnLimits.some((beginning) => name.startsWith(beginning)))
    return 'it is handed on anyway, where the gateway has no limits of its own to tell of';
  return answeredCredential.test(name) ? 'it is called like a credential' : null;
}

/**
 * Returns why a client's header may not be passed to an upstream, or null.
 * @param name in lower case
 */
export function passHeaderProblem(name: string): string | null {
  const refused = refusedHeaders.get(name);
  if (refused !== undefined) return refused.split(';', 1)[0] ?? refused;
  if (ownHeaders.has(name) || ownBeginnings.some((beginning) => name.startsWith(beginning)))
    return 'it is between the client and the gateway';
  if (credential.test(name)) return 'it is called like a credential';
  if (ofVendor.has(name)) return 'it is passed to upstreams of its vendor anyway';
  return null;
}
