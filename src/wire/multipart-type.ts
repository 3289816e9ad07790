import { GatewayError } from '../errors.js';
import { readParameters } from './multipart-parameters.js';

const formType = /^\s*multipart\/form-data\s*(?=;|$)/i;
/** RFC 2046 section 5.1.1: 1 to 70 of these characters, the last of them no space. */
const validBoundary = /^[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]$/;
/** So much of a foreign content type is told. */
const shownType = 80;

/** True for a content type that says `multipart/form-data`, whatever its parameters. */
export function isMultipart(contentType: string): boolean {
  return formType.test(contentType);
}

/** True for a text that may be a boundary. */
export function isBoundary(text: string): boolean {
  return validBoundary.test(text);
}

/**
 * Reads the boundary of a form out of its content type (RFC 7578 section 4.1).
 * @returns the boundary, without the dashes that stand before it in the form
 * @throws {GatewayError} `unsupported_media_type` for another content type, `invalid_request` for one without a
 * boundary, with two, or with one that is not of 1 to 70 of the characters that a boundary may have
 */
export function boundaryOf(contentType: string): string {
  const type = formType.exec(contentType);
  if (type === null) {
    const found = contentType.trim().slice(0, shownType);
    throw new GatewayError(
      'unsupported_media_type',
      `This endpoint takes a form: expected the content type 'multipart/form-data', found ${
        found === '' ? 'none' : `'${found}'`
      }.`,
    );
  }
  const parameters = readParameters(contentType, type[0].length);
  if (parameters === null) throw refused('is malformed behind multipart/form-data');
  const [boundary, second] = parameters.filter(({ name }) => name === 'boundary');
  if (boundary === undefined)
    throw refused(
      "has no boundary: expected 'multipart/form-data; boundary=…', which HTTP clients write themselves",
    );
  // Parsers differ on which of them counts.
  if (second !== undefined) throw refused('has two boundaries');
  if (!isBoundary(boundary.value))
    throw refused(
      "has a boundary that is none: expected 1 to 70 letters, digits, spaces or '()+_,-./:=?, no space at the end",
    );
  return boundary.value;
}

function refused(what: string): GatewayError {
  return new GatewayError('invalid_request', `The content type of the form ${what}.`);
}
