import type { AnswerContext, TargetOptions } from '../../../src/conversation/codec.js';
import type { ConversationRequest } from '../../../src/conversation/request.js';
import { GatewayError } from '../../../src/errors.js';
import { responsesCodec } from '../../../src/protocols/responses/index.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { createSealer } from '../../../src/wire/seal.js';
import { plainRequest } from '../../conversation/plain-request.js';
import { writeRequest } from '../write-request.js';

export const sealer = createSealer('a secret of the tests');

export const target: TargetOptions = {
  model: 'up',
  maxTokens: 4096,
  maxTokensField: 'max_tokens',
  streamUsage: true,
  thinking: 'budget',
  jsonSchema: true,
  customTools: false,
  topK: false,
  promptCaching: true,
  cacheBreakpoints: false,
  threads: true,
  unsignedThinking: false,
  encryptedReasoning: false,
  upstream: '',
  search: null,
  hostedTools: 'reject',
};

export const context: AnswerContext = {
  id: '1',
  requestId: 'req_1',
  created: 1,
  model: 'm',
  includeUsage: true,
  showReasoning: true,
  echo: null,
  compaction: null,
  sealer,
  framing: 'sse',
};

/** A request that asks for nothing but an answer. */
export const plain: ConversationRequest = {
  ...plainRequest,
  from: 'chat',
  stream: false,
  leftOut: [],
  system: [],
  turns: [{ role: 'user', parts: [{ kind: 'text', text: 'hi' }] }],
  tools: [],
  hostedTools: [],
  toolChoice: null,
  format: null,
  reasoning: null,
  maxTokens: null,
  temperature: null,
  topP: null,
};

/** Decodes a body with these members. */
export function decode(members: JsonObject, stream = false): ConversationRequest {
  return responsesCodec.decodeRequest({ model: 'm', input: 'hi', ...members }, stream, sealer);
}

/** Encodes `plain` with these members, and parses the text. */
export function encode(members: Partial<ConversationRequest>, options = target): JsonObject {
  return JSON.parse(writeRequest(responsesCodec, { ...plain, ...members }, options)) as JsonObject;
}

/** The error that a step throws. */
export function errorOf(step: () => unknown): GatewayError {
  try {
    step();
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error('Nothing was thrown.');
}
