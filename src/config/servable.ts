import { type TextProtocolName, textProtocols } from '../conversation/request.js';
import type { Protocol, UpstreamKind } from './types.js';
import { otherProtocols, protocols } from './words.js';

/** What the upstreams of a kind take as it comes, but for responses, where each target says so itself. */
const native: Readonly<Record<UpstreamKind, readonly Protocol[]>> = {
  chat: ['chat', ...otherProtocols],
  messages: ['messages'],
  generateContent: ['generateContent', 'embeddings'],
  vendork: ['video'],
  vendorj: ['video'],
  generic: ['video'],
  simulator: protocols,
};

/** The protocol into which calls are translated for a kind, or null for one that needs none or has no text. */
const translated: Readonly<Record<UpstreamKind, TextProtocolName | null>> = {
  chat: 'chat',
  messages: 'messages',
  generateContent: 'generateContent',
  vendork: null,
  vendorj: null,
  generic: null,
  simulator: null,
};

/** The protocols whose calls a target takes as they come. */
export function nativeProtocols(kind: UpstreamKind, responses: boolean | 'only'): ReadonlySet<Protocol> {
  const protocols = new Set(native[kind]);
  if (responses !== false) protocols.add('responses');
  if (responses === 'only' && kind === 'chat') protocols.delete('chat');
  return protocols;
}

/** The protocol into which calls of the other text protocols are translated for a target, or null. */
export function translationProtocol(
  kind: UpstreamKind,
  responses: boolean | 'only',
): TextProtocolName | null {
  return kind === 'chat' && responses === 'only' ? 'responses' : translated[kind];
}

/**
 * The protocols in which a model can be offered when its target is of a kind: each text protocol can be translated into
 * what a text upstream speaks.
 */
export function servableProtocols(kind: UpstreamKind): ReadonlySet<Protocol> {
  return new Set(translated[kind] === null ? native[kind] : [...native[kind], ...textProtocols]);
}
