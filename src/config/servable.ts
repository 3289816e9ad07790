import { type Protocol, protocols, type UpstreamKind } from './types.js';

/** The protocols in which a model can be offered when its target is of a kind. */
export const servableProtocols: Readonly<Record<UpstreamKind, ReadonlySet<Protocol>>> = {
  chat: new Set([
    'chat',
    'responses',
    'completions',
    'embeddings',
    'rerank',
    'moderations',
    'audio',
    'images',
    'video',
    'realtime',
  ]),
  messages: new Set(['messages']),
  generateContent: new Set(['generateContent']),
  vendork: new Set(['video']),
  vendorj: new Set(['video']),
  generic: new Set(['video']),
  simulator: new Set(protocols),
};
