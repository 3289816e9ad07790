import { isObject, objectOf, parseJson, textOf } from './json.js';

/** An error answer, independent of the protocol. */
interface Refusal {
  readonly message: string;
  /** The error's type, code or status, if it has one. */
  readonly kind: string | null;
  /** The invalid field. */
  readonly param: string | null;
}

/**
 * Parses an error body: `{"error":{…}}` of the OpenAI family, messages and generateContent, or the video vendors'
 * envelope with `message`.
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
