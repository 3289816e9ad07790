import type { ConfiguredHeaders, KeyHeader, Protocol, Upstream, UpstreamKind } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import { type HeadLines, headerLinesOf, joinLines, LinePair, noLines } from '../../wire/head.js';
import { memberError } from '../../wire/json.js';
import { editedList, type HeaderReader } from '../../wire/passed-headers.js';
import { queryParameter } from '../../wire/query.js';

/** The credentials that a route accepts. */
export type AuthStyle = 'bearer' | 'messages' | 'generateContent' | 'modelList' | 'realtime';

/** Every place that may hold a key or a hint at the expected format; empty if the request has none. */
export interface CredentialSource {
  readonly authorization: string;
  /** `x-api-key` */
  readonly apiKey: string;
  /** `api-key`, used by clients of OpenAI's models on Azure. */
  readonly azureKey: string;
  /** `x-vendorg-api-key`, or the vendor's own name of it. */
  readonly vendorgKey: string;
  /** `vendorc-version`, or the vendor's own name of it. */
  readonly vendorcVersion: string;
  /** Subprotocols that a WebSocket's client offers. A browser, which cannot set headers, puts its key among them. */
  readonly socketProtocols: string;
  /** Raw query without the question mark. */
  readonly query: string;
}

/** Format of a model list. `chatAndMessages` is a chat list whose items a messages client can read, too. */
export type ModelListFormat = 'chat' | 'messages' | 'generateContent' | 'chatAndMessages';

type KeyLocation = 'x-api-key' | 'x-vendorg-api-key' | 'key';

interface Refusals {
  readonly missing: GatewayError;
  readonly notBearer: GatewayError;
  readonly misplaced: Readonly<Record<KeyLocation, GatewayError>>;
}

// Created once, so that a flood of bad requests does not cost stack traces. An error is data and never changes.
const refusals: Readonly<Record<AuthStyle, Refusals>> = {
  bearer: refusalsFor(`the header 'Authorization: Bearer <key>'`),
  messages: refusalsFor(`the header 'x-api-key' or 'Authorization: Bearer <key>'`),
  generateContent: refusalsFor(
    `the header 'x-vendorg-api-key', the query parameter 'key' or the header 'Authorization: Bearer <key>'`,
  ),
  modelList: refusalsFor(
    `the header 'Authorization: Bearer <key>', 'x-api-key' or 'x-vendorg-api-key', or the query parameter 'key'`,
  ),
  realtime: refusalsFor(
    `the header 'Authorization: Bearer <key>' or, from a browser, the subprotocol 'openai-insecure-api-key.<key>'`,
  ),
};

/**
 * Finds the key of a request: in the protocol's own place first, then bearer, then `api-key`. Whether the key is known
 * is for the caller to check, as is the version header that the messages protocol requires.
 * @returns the key, or a 401 that says what is wrong and where the key belongs
 */
export function presentedKey(style: AuthStyle, source: CredentialSource): string | GatewayError {
  const own = ownKey(style, source);
  if (own !== '') return own;
  const token = bearerToken(source.authorization);
  if (token !== '') return token;
  if (source.azureKey !== '') return source.azureKey;
  if (style === 'modelList' && source.apiKey !== '') return source.apiKey;
  return refuse(refusals[style], source);
}

/**
 * Returns the format of `GET /v1/models`. `x-api-key` with a version means the messages list. The vendorg header or a
 * `key` query means the generateContent list. Anything else means the chat list. The messages SDK from 1.0 on sends a
 * bearer token and a version: it gets the chat list with the fields that it reads.
 */
export function modelListFormat(source: CredentialSource): ModelListFormat {
  if (source.apiKey !== '' && source.vendorcVersion !== '') return 'messages';
  if (source.vendorgKey !== '' || queryParameter(source.query, 'key') !== '') return 'generateContent';
  return source.apiKey === '' && source.vendorcVersion !== '' ? 'chatAndMessages' : 'chat';
}

/**
 * Checks the version header of the messages protocol. Any date is accepted. A call of another protocol may have the
 * header, which it passes on if it is translated. For a list of models, the header is only a hint.
 * @returns the 400 for a version that is missing or not a date, or null
 */
export function checkVendorcVersion(style: AuthStyle, version: string): GatewayError | null {
  if (version === '') return style === 'messages' ? versionMissing : null;
  return style === 'modelList' || datePattern.test(version) ? null : versionInvalid;
}

/** Returns the 400 for a header whose value would be sent to an upstream, but is not valid. */
export function unwritableHeader(name: string): GatewayError {
  return memberError(
    'invalid_value',
    name,
    `The header '${name}' holds a character that no upstream can be sent: use printable ASCII.`,
  );
}

const datePattern = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/;
const versionMissing = memberError(
  'missing_parameter',
  'vendorc-version',
  `The header 'anthropic-version' (or 'vendorc-version') is required; its value is a date such as 2023-06-01.`,
);
const versionInvalid = memberError(
  'invalid_value',
  'vendorc-version',
  `The header 'anthropic-version' (or 'vendorc-version') must be a date such as 2023-06-01.`,
);

/** Returns the key in the place that only this style has, or an empty string. */
function ownKey(style: AuthStyle, source: CredentialSource): string {
  switch (style) {
    case 'bearer':
      return '';
    case 'messages':
      return source.apiKey;
    case 'generateContent':
      return source.vendorgKey !== '' ? source.vendorgKey : queryParameter(source.query, 'key');
    case 'realtime':
      return protocolAfter(source.socketProtocols, keyProtocol);
    case 'modelList':
      return modelListFormat(source) === 'messages' ? source.apiKey : ownKey('generateContent', source);
  }
}

const keyProtocol = 'openai-insecure-api-key.';

/** Returns the rest of the first subprotocol in a list with a prefix, or an empty string. */
function protocolAfter(protocols: string, prefix: string): string {
  if (!protocols.includes(prefix)) return '';
  for (const protocol of protocols.split(',')) {
    const name = protocol.trim();
    if (name.startsWith(prefix)) return name.slice(prefix.length);
  }
  return '';
}

const bearerScheme = /^bearer /i;

/** Returns the token of a bearer header (RFC 6750 section 2.1; the scheme in any case), or an empty string. */
function bearerToken(authorization: string): string {
  if (!authorization.startsWith('Bearer ') && !bearerScheme.test(authorization)) return '';
  return authorization.slice('Bearer '.length).trim();
}

function refuse(refusal: Refusals, source: CredentialSource): GatewayError {
  if (source.apiKey !== '') return refusal.misplaced['x-api-key'];
  if (source.vendorgKey !== '') return refusal.misplaced['x-vendorg-api-key'];
  if (queryParameter(source.query, 'key') !== '') return refusal.misplaced.key;
  return source.authorization === '' ? refusal.missing : refusal.notBearer;
}

function refusalsFor(wanted: string): Refusals {
  const refusal = (problem: string) =>
    new GatewayError('invalid_api_key', `${problem} Send it in ${wanted}.`);
  const misplaced = (location: string) =>
    refusal(`The API key came in ${location}, which this endpoint does not read.`);
  return {
    missing: refusal('The request has no API key.'),
    notBearer: refusal(`The header 'Authorization' holds no bearer token, so there is no API key.`),
    misplaced: {
      'x-api-key': misplaced(`the header 'x-api-key'`),
      'x-vendorg-api-key': misplaced(`the header 'x-vendorg-api-key'`),
      key: misplaced(`the query parameter 'key'`),
    },
  };
}

/** Lines of a client's request head that describe the client to its vendor's upstreams: see `HeaderReader`. */
interface ClientInfoLines {
  readonly sharedLines: HeadLines;
  readonly openaiLines: HeadLines;
  readonly anthropicLines: HeadLines;
  readonly googleLines: HeadLines;
}

/** A client's headers for its vendor; empty if absent. */
export interface VendorHeaders {
  readonly openaiBeta: string;
  readonly vendorcBeta: string;
  readonly vendorcVersion: string;
}

const bearerLine = headerLinesOf('authorization');
const openaiBetaLine = headerLinesOf('openai-beta');
const messagesBetaLine = headerLinesOf('anthropic-beta');
const messagesVersionLine = headerLinesOf('anthropic-version');

/** Version of the messages protocol in which translated calls are made. */
const ownVersionLine = messagesVersionLine('2023-06-01');

/** The header lines of a key, for each header that may hold one. */
const keyLines: Readonly<Record<KeyHeader, (key: string) => HeadLines>> = {
  authorization: (key) => bearerLine(`Bearer ${key}`),
  'api-key': headerLinesOf('api-key'),
  'x-api-key': headerLinesOf('x-api-key'),
  'x-goog-api-key': headerLinesOf('x-goog-api-key'),
};

/** The header in which the upstreams of a kind expect a key. */
const keyHeaderOfKind: Readonly<Record<UpstreamKind, KeyHeader>> = {
  chat: 'authorization',
  messages: 'x-api-key',
  generateContent: 'x-goog-api-key',
  vendork: 'authorization',
  vendorj: 'authorization',
  generic: 'authorization',
  simulator: 'authorization',
};

/** Returns the header line with which the gateway authenticates at an upstream. */
export function credentialLine(
  { kind, keyHeader }: Pick<Upstream, 'kind' | 'keyHeader'>,
  key: string,
): HeadLines {
  return keyLines[keyHeader ?? keyHeaderOfKind[kind]](key);
}

/**
 * A vendor with header lines of its own: `openai-beta`, or `anthropic-version` with `anthropic-beta`. Google has none
 * of these, but its clients describe themselves as the others' do.
 */
type HeaderVendor = Exclude<HeaderReader, 'shared'>;

/** The vendors whose header lines belong to a call in a protocol. */
const vendorsOfProtocol: Readonly<Record<Protocol, readonly HeaderVendor[]>> = {
  chat: ['openai'],
  responses: ['openai'],
  messages: ['anthropic'],
  generateContent: ['google'],
  completions: ['openai'],
  embeddings: ['openai', 'google'],
  // OpenAI has no rerank endpoint.
  rerank: [],
  moderations: ['openai'],
  audio: ['openai'],
  images: ['openai'],
  video: ['openai'],
  realtime: ['openai'],
};

/**
 * The vendors whose header lines the upstreams of a kind understand. Upstreams of several kinds are called in the
 * protocol `video`.
 */
const vendorsOfKind: Readonly<Record<UpstreamKind, readonly HeaderVendor[]>> = {
  chat: ['openai'],
  messages: ['anthropic'],
  generateContent: ['google'],
  vendork: [],
  vendorj: [],
  generic: [],
  simulator: ['openai', 'anthropic', 'google'],
};

/**
 * Returns header lines that only the vendor's upstreams understand: beta features that the client requests, and the
 * version that the messages protocol requires. They are never sent to upstreams of other vendors.
 * @param protocol of the upstream's request
 * @throws {GatewayError} `internal_error` for a value that cannot be written
 */
export function vendorLines(
  protocol: Protocol,
  client: VendorHeaders,
  kind: UpstreamKind,
  configured: ConfiguredHeaders,
): HeadLines {
  switch (vendorOf(protocol, kind)) {
    case 'openai': {
      const betas = ruledBetas('openai-beta', client.openaiBeta, configured);
      return betas === '' ? noLines : openaiBetaLine(betas);
    }
    case 'anthropic':
      return anthropicLinesOf(client, configured);
    case 'google':
    case null:
      return noLines;
  }
}

function anthropicLinesOf(client: VendorHeaders, configured: ConfiguredHeaders): HeadLines {
  const { vendorcVersion } = client;
  const betas = ruledBetas('anthropic-beta', client.vendorcBeta, configured);
  const beta = betas === '' ? noLines : messagesBetaLine(betas);
  if (configured.headers.some(([name]) => name === 'anthropic-version')) return beta;
  return joinLines(vendorcVersion === '' ? ownVersionLine : messagesVersionLine(vendorcVersion), beta);
}

/**
 * Returns the list of beta features in a client's header, changed by a target's rules. A header that the config sets
 * replaces the client's. In any other, features are added and removed as the rules say.
 */
function ruledBetas(name: string, asked: string, { headers, clientHeaders }: ConfiguredHeaders): string {
  if (clientHeaders === null) return asked;
  if (headers.some(([field]) => field === name)) return '';
  const { without, addedBetas, droppedBetas } = clientHeaders;
  const list = without.has(name) ? '' : asked;
  return addedBetas.length + droppedBetas.size > 0 ? editedList(list, addedBetas, droppedBetas) : list;
}

const ofOpenai = new LinePair();
const ofAnthropic = new LinePair();

/**
 * Returns a client's header lines about itself: sessions, turns, the SDK and the app. An upstream gets those that its
 * own vendor's clients send. What another vendor's client says about itself is not understood there, and must not reach
 * it.
 * @param protocol of the upstream's request
 */
export function clientInfoLines(protocol: Protocol, client: ClientInfoLines, kind: UpstreamKind): HeadLines {
  switch (vendorOf(protocol, kind)) {
    case 'openai':
      return ofOpenai.join(client.sharedLines, client.openaiLines);
    case 'anthropic':
      return ofAnthropic.join(client.sharedLines, client.anthropicLines);
    case 'google':
      return client.googleLines;
    case null:
      return noLines;
  }
}

function vendorOf(protocol: Protocol, kind: UpstreamKind): HeaderVendor | null {
  const known = vendorsOfKind[kind];
  for (const vendor of vendorsOfProtocol[protocol]) if (known.includes(vendor)) return vendor;
  return null;
}
