import type { ConversationRequest } from '../../../src/conversation/request.js';
import { responsesCodec } from '../../../src/protocols/responses/index.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { plainContext, plainRequest, plainTarget } from '../../conversation/plain.js';
import { writeRequest } from '../write-request.js';

export const { sealer } = plainContext;

export const target = plainTarget;

export const context = plainContext;

/** A request that asks for nothing but an answer. */
export const plain: ConversationRequest = { ...plainRequest, includeUsage: true };

/** Decodes a body with these members. */
export function decode(members: JsonObject, stream = false): ConversationRequest {
  return responsesCodec.decodeRequest({ model: 'm', input: 'hi', ...members }, stream, sealer);
}

/** Encodes `plain` with these members, and parses the text. */
export function encode(members: Partial<ConversationRequest>, options = target): JsonObject {
  return JSON.parse(writeRequest(responsesCodec, { ...plain, ...members }, options)) as JsonObject;
}
