import type { Endpoint } from '../endpoint.js';
import { never } from '../once.js';
import { encodingAmender } from './encoding.js';
import { openaiOnGoogle, openaiRules } from './forms.js';

/** `POST /v1/embeddings`, and `POST /v1/engines/{model}/embeddings` once the model is in the body. */
export const embeddings: Endpoint = {
  ...openaiRules,
  protocol: 'embeddings',
  upstreamPath: () => '/embeddings',
  upstreamQuery: null,
  modelInBody: true,
  usageOnRequest: false,
  outputLimit: null,
  streamsUnasked: false,
  answersJson: true,
  mayLack: false,
  translation: null,
  otherForm: openaiOnGoogle,
  amender: encodingAmender,
  conversation: null,
  once: never,
};
