import { type Endpoint, type OtherForm, plainEndpoint } from '../endpoint.js';
import { modelPath } from '../model-path.js';
import { never } from '../once.js';
import { encodingAmender } from './encoding.js';
import { contentOnOpenai, contentsOnOpenai, googleRules, openaiOnGoogle, openaiRules } from './forms.js';

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

/** `POST /v1beta/models/{model}:embedContent` */
export const embedContent: Endpoint = googleEndpoint('embedContent', contentOnOpenai);

/** `POST /v1beta/models/{model}:batchEmbedContents`: what the vendor's SDKs call for one content, too. */
export const batchEmbedContents: Endpoint = googleEndpoint('batchEmbedContents', contentsOnOpenai);

function googleEndpoint(operation: string, otherForm: OtherForm): Endpoint {
  return {
    ...plainEndpoint,
    ...googleRules,
    protocol: 'embeddings',
    upstreamPath: (model) => `${modelPath(model)}:${operation}`,
    modelInBody: false,
    otherForm,
    once: never,
  };
}
