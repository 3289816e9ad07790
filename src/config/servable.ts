import { type TextProtocolName, textProtocols } from '../conversation/request.js';
import type { Protocol, UpstreamKind } from './types.js';
import { otherProtocols, protocols } from './words.js';

/** Protocols that upstreams of a kind take without translation. Responses are set for each target. */
const native: Readonly<Record<UpstreamKind, readonly Protocol[]>> = {
  chat: ['chat', ...otherProtocols],
  messages: ['messages'],
  generateContent: ['generateContent', 'embeddings'],
  vendork: ['video'],
  vendorj: ['video'],
  generic: ['video'],
  simulator: protocols,
};

/** The protocol into which calls are translated for a kind. Null if it needs no translation or has no text. */
const translated: Readonly<Record<UpstreamKind, TextProtocolName | null>> = {
  chat: 'chat',
  messages: 'messages',
  generateContent: 'generateContent',
  vendork: null,
  vendorj: null,
  generic: null,
  simulator: null,
};

/** Returns the protocols whose calls a target takes without translation. */
export function nativeProtocols(kind: UpstreamKind, responses: boolean | 'only'): ReadonlySet<Protocol> {
  const protocols = new Set(native[kind]);
  if (responses !== false) protocols.add('responses');
  if (responses === 'only' && kind === 'chat') protocols.delete('chat');
  return protocols;
}

/** Returns the protocol into which a target's other text calls are translated, or null. */
export function translationProtocol(
  kind: UpstreamKind,
  responses: boolean | 'only',
): TextProtocolName | null {
  return kind === 'chat' && responses === 'only' ? 'responses' : translated[kind];
}

/**
 * Returns the protocols in which a model can be offered if its target is of this kind. Each text protocol can be
 * translated into that of a text upstream.
 */
export function servableProtocols(kind: UpstreamKind): ReadonlySet<Protocol> {
  return new Set(translated[kind] === null ? native[kind] : [...native[kind], ...textProtocols]);
}
