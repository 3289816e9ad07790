import { shortened } from '../../errors.js';
import { memberError } from '../../wire/json.js';

/** Fields of a form that name the model that writes an SVG. Members of JSON, where it is `model` in `svg`, may become fields. */
export const authorFields = ['svg[model]', 'svg.model'];

const authorField = /^svg(?:\[model\]|\.model)$/i;
/** The same as some parsers read it, with indexes of lists or unpaired brackets. */
const likeAuthor = /^svg(?:\[\d*\])*(?:\[model\]|\.model)[\d[\]]*$/i;

/** Returns whether a field of a form names the model that writes an SVG. */
export function isAuthorField(name: string): boolean {
  return authorField.test(name);
}

/** @throws {GatewayError} of status 400 for a field of a form that only some parsers take for one that names such a model */
export function refuseUnclearAuthor(name: string): void {
  if (isAuthorField(name) || !likeAuthor.test(name)) return;
  const message = `'${shortened(name, 200)}' names a model in a way that only some parsers read: name it in 'svg[model]', in JSON in 'svg.model'.`;
  throw memberError('invalid_value', 'svg', message);
}
