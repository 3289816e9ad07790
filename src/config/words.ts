import { textProtocols } from '../conversation/request.js';

/** Protocols that are not translated into one another. */
export const otherProtocols = [
  'completions',
  'embeddings',
  'rerank',
  'moderations',
  'audio',
  'images',
  'video',
  'realtime',
] as const;

/** Protocols in which a model can be offered. */
export const protocols = [...textProtocols, ...otherProtocols] as const;

export const upstreamKinds = [
  'chat',
  'messages',
  'generateContent',
  'vendork',
  'vendorj',
  'generic',
  'simulator',
] as const;

/** Headers in which upstreams may expect a key. `authorization` contains it as a bearer token. */
export const keyHeaders = ['authorization', 'api-key', 'x-api-key', 'x-goog-api-key'] as const;
