import { GatewayError } from '../errors.js';

/** Errors of status 400 for forms that are malformed, or that parsers read differently. */

/** @param param name of the part that it is about, or null */
export function refused(message: string, param: string | null = null): GatewayError {
  return new GatewayError('invalid_request', message, { param });
}

export function lineEnd(): GatewayError {
  return refused(
    'A line of the form ends with LF alone: lines of boundaries and heads end with CRLF (RFC 2046).',
  );
}

/** @param line the boundary with the dashes before it */
export function longerLine(line: Buffer): GatewayError {
  return refused(`A line of the form begins with its boundary, '${line}', and goes on: choose another one.`);
}

/** @param part how the part is called in messages */
export function loneLineEnd(part: string, name: string | undefined): GatewayError {
  return refused(
    `${part} has the form's boundary in it, behind a CR or LF alone: end lines with CRLF (RFC 2046), or choose ` +
      'another boundary.',
    name,
  );
}

/** @param most bytes of white space that may stand there */
export function beyondEnd(most: number): GatewayError {
  return refused(
    `The form goes on behind its last boundary: only blanks and line ends may stand there, ${most} bytes of them at most.`,
  );
}
