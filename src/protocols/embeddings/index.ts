import { inputMetering, wholeAnswers } from '../../conversation/stream-rules.js';
import { never } from '../once.js';
import type { Endpoint } from '../protocol.js';
import { encodingAmender } from './encoding.js';
import { embeddingUsage } from './usage.js';

/** `POST /v1/embeddings`, and `POST /v1/engines/{model}/embeddings` once the model is in the body. */
export const embeddings: Endpoint = {
  ...wholeAnswers(embeddingUsage, inputMetering),
  protocol: 'embeddings',
  upstreamPath: () => '/embeddings',
  upstreamQuery: null,
  modelInBody: true,
  usageOnRequest: false,
  outputLimit: null,
  mayStream: false,
  answersJson: true,
  translation: null,
  amender: encodingAmender,
  once: never,
};
