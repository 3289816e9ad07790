import type { Protocol, Upstream, UpstreamKind } from '../config/types.js';

/** Version of the messages protocol that translated calls are made in. */
const messagesVersion = '2023-06-01';

/** What a client's head says to its vendor; empty where it says nothing. */
export interface VendorHeaders {
  readonly openaiBeta: string;
  readonly vendorcBeta: string;
  readonly vendorcVersion: string;
}

/** The header line, with CRLF behind it, by which the gateway signs in at an upstream. */
export function credentialLine(kind: UpstreamKind, key: string): string {
  switch (kind) {
    case 'messages':
      return `x-api-key: ${key}\r\n`;
    case 'generateContent':
      return `x-goog-api-key: ${key}\r\n`;
    default:
      return `authorization: Bearer ${key}\r\n`;
  }
}

/**
 * Header lines that only an upstream of the vendor understands, CRLF behind each: beta features that the client asks
 * for, and the version that the messages protocol wants. Upstreams of other vendors never see them.
 * @param wire protocol in which the upstream is called
 */
export function vendorLines(wire: Protocol, client: VendorHeaders, upstream: Upstream): string {
  if (wire === 'generateContent') return '';
  if (wire !== 'messages') return client.openaiBeta === '' ? '' : `openai-beta: ${client.openaiBeta}\r\n`;
  const beta = client.vendorcBeta === '' ? '' : `anthropic-beta: ${client.vendorcBeta}\r\n`;
  if (upstream.headers.some(([name]) => name === 'anthropic-version')) return beta;
  return `anthropic-version: ${client.vendorcVersion === '' ? messagesVersion : client.vendorcVersion}\r\n${beta}`;
}
