import { type Endpoint, plainEndpoint } from '../endpoint.js';
import { never } from '../once.js';
import { encodingAmender } from './encoding.js';
import { openaiOnGoogle, openaiRules } from './forms.js';

/** `POST /v1/embeddings`, and `POST /v1/engines/{model}/embeddings` once the model is in the body. */
export const embeddings: Endpoint = {
  ...plainEndpoint,
  ...openaiRules,
  protocol: 'embeddings',
  upstreamPath: () => '/embeddings',
  otherForm: openaiOnGoogle,
  amender: encodingAmender,
  once: never,
};
