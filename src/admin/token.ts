import { createHash, timingSafeEqual } from 'node:crypto';

const scheme = /^bearer +/i;

/**
 * Makes the check of the admin token.
 * @returns says whether an `authorization` header holds it, in a time that says nothing about how much of it is right
 */
export function createTokenCheck(token: string): (authorization: string | undefined) => boolean {
  const wanted = digest(token);
  return (authorization) =>
    authorization !== undefined &&
    scheme.test(authorization) &&
    timingSafeEqual(digest(authorization.replace(scheme, '').trimEnd()), wanted);
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
