import type { Protocol, Upstream, UpstreamKind } from '../../config/types.js';
import { type HeadLines, headerLinesOf, joinLines, noLines } from '../../wire/head.js';

/** What a client's head says to its vendor; empty where it says nothing. */
export interface VendorHeaders {
  readonly openaiBeta: string;
  readonly vendorcBeta: string;
  readonly vendorcVersion: string;
}

const messagesKeyLine = headerLinesOf('x-api-key');
const generateContentKeyLine = headerLinesOf('x-goog-api-key');
const bearerLine = headerLinesOf('authorization');
const openaiBetaLine = headerLinesOf('openai-beta');
const messagesBetaLine = headerLinesOf('anthropic-beta');
const messagesVersionLine = headerLinesOf('anthropic-version');

/** Version of the messages protocol that translated calls are made in. */
const ownVersionLine = messagesVersionLine('2023-06-01');

/** The header line by which the gateway signs in at an upstream. */
export function credentialLine(kind: UpstreamKind, key: string): HeadLines {
  switch (kind) {
    case 'messages':
      return messagesKeyLine(key);
    case 'generateContent':
      return generateContentKeyLine(key);
    default:
      return bearerLine(`Bearer ${key}`);
  }
}

/**
 * Header lines that only an upstream of the vendor understands: beta features that the client asks for, and the version
 * that the messages protocol wants. Upstreams of other vendors never see them.
 * @param wire protocol in which the upstream is called
 * @throws {GatewayError} `internal_error` for a value that cannot be written
 */
export function vendorLines(wire: Protocol, client: VendorHeaders, upstream: Upstream): HeadLines {
  const { openaiBeta, vendorcBeta, vendorcVersion } = client;
  if (wire === 'generateContent') return noLines;
  if (wire !== 'messages') return openaiBeta === '' ? noLines : openaiBetaLine(openaiBeta);
  const beta = vendorcBeta === '' ? noLines : messagesBetaLine(vendorcBeta);
  if (upstream.headers.some(([name]) => name === 'anthropic-version')) return beta;
  return joinLines(vendorcVersion === '' ? ownVersionLine : messagesVersionLine(vendorcVersion), beta);
}
