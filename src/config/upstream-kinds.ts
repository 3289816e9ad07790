import { type TextProtocolName, textProtocols } from '../conversation/request.js';
import type { Protocol, UpstreamKind } from './types.js';
import { otherProtocols, protocols } from './words.js';

/** What the config and its checks need to know of a kind of upstreams. */
interface KindTraits {
  /** Protocols that its upstreams take without translation. Responses are set for each target. */
  readonly native: readonly Protocol[];
  /** The protocol into which other text calls are translated. Null if it needs no translation or has no text. */
  readonly translated: TextProtocolName | null;
  /**
   * Default path of a base URL without one. The vendors' SDKs accept such URLs, and operators paste them. Null if some
   * upstreams of the kind have a version in their path and others none, so that none is assumed.
   */
  readonly versionPath: string | null;
  /** Its upstreams may have the responses protocol, its WebSocket and OpenAI's forms of images. */
  readonly isOpenaiCompatible: boolean;
  /** The gateway writes every body, so rules for members of bodies cannot apply. */
  readonly writesBodies: boolean;
  /** A request has the model's name in its path. */
  readonly hasModelInPath: boolean;
  /** Its vendor has a header with beta features. */
  readonly hasBetas: boolean;
}

const videoVendor: KindTraits = {
  native: ['video'],
  translated: null,
  versionPath: '',
  isOpenaiCompatible: false,
  writesBodies: true,
  hasModelInPath: false,
  hasBetas: false,
};

export const kindTraits: Readonly<Record<UpstreamKind, KindTraits>> = {
  chat: {
    native: ['chat', ...otherProtocols],
    translated: 'chat',
    versionPath: null,
    isOpenaiCompatible: true,
    writesBodies: false,
    hasModelInPath: false,
    hasBetas: true,
  },
  messages: {
    native: ['messages'],
    translated: 'messages',
    versionPath: '/v1',
    isOpenaiCompatible: false,
    writesBodies: false,
    hasModelInPath: false,
    hasBetas: true,
  },
  generateContent: {
    native: ['generateContent', 'embeddings'],
    translated: 'generateContent',
    versionPath: '/v1beta',
    isOpenaiCompatible: false,
    writesBodies: false,
    hasModelInPath: true,
    hasBetas: false,
  },
  vendork: videoVendor,
  vendorj: videoVendor,
  generic: videoVendor,
  simulator: {
    native: protocols,
    translated: null,
    versionPath: '',
    isOpenaiCompatible: true,
    writesBodies: false,
    hasModelInPath: false,
    hasBetas: true,
  },
};

/** Returns the protocols whose calls a target takes without translation. */
export function nativeProtocols(kind: UpstreamKind, responses: boolean | 'only'): ReadonlySet<Protocol> {
  const native = new Set(kindTraits[kind].native);
  if (responses !== false) native.add('responses');
  if (responses === 'only' && kind === 'chat') native.delete('chat');
  return native;
}

/** Returns the protocol into which a target's other text calls are translated, or null. */
export function translationProtocol(
  kind: UpstreamKind,
  responses: boolean | 'only',
): TextProtocolName | null {
  return kind === 'chat' && responses === 'only' ? 'responses' : kindTraits[kind].translated;
}

/**
 * Returns the protocols in which a model can be offered if its target is of this kind. Each text protocol can be
 * translated into that of a text upstream.
 */
export function servableProtocols(kind: UpstreamKind): ReadonlySet<Protocol> {
  const { native, translated } = kindTraits[kind];
  return new Set(translated === null ? native : [...native, ...textProtocols]);
}
