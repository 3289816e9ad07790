import { isObject, objectOf, parseJson, textOf } from './json.js';

/** What an answer with an error says, whichever protocol it came in. */
interface Refusal {
  readonly message: string;
  /** The error's type, code or status, as far as it has them. */
  readonly kind: string | null;
  /** The field at fault. */
  readonly param: string | null;
}

/**
 * Reads an error's body: `{"error":{…}}` of the OpenAI family, of messages and of generateContent, and the envelope
 * with `message` of the video vendors.
 * @param body text of the body
 */
export function readRefusal(status: number, body: string): Refusal {
  const value = objectOf(parseJson(body));
  const error = isObject(value.error) ? value.error : value;
  const kinds = [error.status, error.type, error.code].filter(
    (each, index, all) => typeof each === 'string' && each !== '' && all.indexOf(each) === index,
  );
  return {
    message: textOf(error.message) || textOf(value.error) || `The gateway answered ${status}.`,
    kind: kinds.length === 0 ? null : kinds.join(', '),
    param: textOf(error.param) || null,
  };
}
