import type { Endpoint, OtherForm } from '../endpoint.js';
import { modelPath } from '../model-path.js';
import { never } from '../once.js';
import { contentOnOpenai, contentsOnOpenai, googleRules } from './forms.js';

/** `POST /v1beta/models/{model}:embedContent` */
export const embedContent: Endpoint = googleEndpoint('embedContent', contentOnOpenai);

/** `POST /v1beta/models/{model}:batchEmbedContents`: what the vendor's SDKs call for one content, too. */
export const batchEmbedContents: Endpoint = googleEndpoint('batchEmbedContents', contentsOnOpenai);

function googleEndpoint(operation: string, otherForm: OtherForm): Endpoint {
  return {
    ...googleRules,
    protocol: 'embeddings',
    upstreamPath: (model) => `${modelPath(model)}:${operation}`,
    upstreamQuery: null,
    modelInBody: false,
    usageOnRequest: false,
    outputLimit: null,
    streamsUnasked: false,
    answersJson: true,
    mayLack: false,
    translation: null,
    conversation: null,
    otherForm,
    amender: null,
    once: never,
  };
}
