import { isObject, type JsonObject } from './json.js';
import { OpenAiError } from './openai-error.js';

/**
 * A body as a JSON object.
 * @throws OpenAiError when it is none.
 */
export function parseObject(bytes: Buffer): JsonObject {
  let body: unknown;
  try {
    body = JSON.parse(bytes.toString());
  } catch {
    throw new OpenAiError(400, 'The body is not valid JSON.', null, 'invalid_json');
  }
  if (!isObject(body)) {
    throw new OpenAiError(400, 'The body is not a JSON object.', null, 'invalid_json');
  }
  return body;
}
