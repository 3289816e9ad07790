import type { ErrorFormat } from './error-format.js';
import { openai, openaiError } from './openai.js';

/** `/v1/rerank`: the chat family's, with the message at the top as well, where Cohere's clients look for it. */
export const rerank: ErrorFormat = {
  ...openai,
  errorBody: (error) => `{"message":${JSON.stringify(error.message)},"error":${openaiError(error)}}`,
};
