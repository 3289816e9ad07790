import { inputMetering, wholeAnswers } from '../../conversation/stream-rules.js';
import { never } from '../once.js';
import { createInputUsageReader } from '../openai-shared/usage.js';
import type { Endpoint } from '../protocol.js';
import { encodingAmender } from './encoding.js';

/** Finds the `usage` of an answer; see `UsageReader.lastUsage`. */
const { lastUsage } = createInputUsageReader();

/** `POST /v1/embeddings`, and `POST /v1/engines/{model}/embeddings` once the model is in the body. */
export const embeddings: Endpoint = {
  ...wholeAnswers(lastUsage, inputMetering, ['"embedding"']),
  protocol: 'embeddings',
  upstreamPath: () => '/embeddings',
  upstreamQuery: null,
  modelInBody: true,
  usageOnRequest: false,
  outputLimit: null,
  mayStream: false,
  answersJson: true,
  mayLack: false,
  translation: null,
  amender: encodingAmender,
  conversation: null,
  once: never,
};
