import type { OwnSecrets } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import { needleAt } from '../../wire/json-skip.js';
import { isVendorAccountError, vendorAccountError } from './vendor-account-error.js';

/*
 * What an upstream says when it refuses something may repeat what it was sent: our key, or whose it is. The words of
 * every refusal are looked through before a client gets them, in whatever form; answers for the keys as they are.
 */

/** JSON in JSON in JSON: errors are handed on as texts of others. */
const mostLayers = 4;
const escaped = /\\(?:u([0-9a-f]{4})|(.))/gis;
const percentEncoded = /(?:%[0-9a-f]{2})+/gi;
/** Names of an account as the vendors make them. */
const accountName = /\b(?:org-|proj_|wrkspc_|acct_)[A-Za-z0-9]{6,}/;

/** Every form in which a text may be meant: as it is, without JSON's escapes, and without a URL's. */
export function readings(words: string): readonly string[] {
  const found = [words];
  let text = words;
  for (let layer = 0; layer < mostLayers && text.includes('\\'); layer++) {
    text = text.replace(escaped, (_, code: string | undefined, plain: string) =>
      code === undefined ? plain : String.fromCharCode(Number.parseInt(code, 16)),
    );
    found.push(text);
  }
  if (text.includes('%'))
    found.push(
      text.replace(percentEncoded, (bytes) => Buffer.from(bytes.replaceAll('%', ''), 'hex').toString()),
    );
  return found;
}

/**
 * What a client is told in place of an upstream's words that hold a secret of ours; null for words that may be told.
 * Our key is nobody else's to name, so whatever quotes it is about our account there. What others may know is kept
 * back and no more: else a caller could bring a key into disrepute with it.
 */
export function secretError(words: string, { keys, encoded, others }: OwnSecrets): GatewayError | null {
  const texts = readings(words);
  const holds = (secret: string): boolean => texts.some((text) => text.includes(secret));
  if (keys.some(holds) || encoded.some(holds)) return vendorAccountError(401, words);
  if (!others.some(holds) && !texts.some((text) => accountName.test(text))) return null;
  return new GatewayError('upstream_error', 'The upstream answered with an error that names its account.');
}

/**
 * Where the first key of ours stands in an answer, whatever it is; -1 where none does. Some 60 ns a key and call.
 * @param bytes of which a key that is cut at their ends is not found
 */
export function keyAt(bytes: Buffer, { marks }: OwnSecrets): number {
  let first = -1;
  for (const { needle } of marks) {
    const at = needleAt(bytes, needle, 0);
    if (at !== -1 && (first === -1 || at < first)) first = at;
  }
  return first;
}

/** What a client is told in place of an answer that holds a key of ours, or null. */
export function keyError(bytes: Buffer, secrets: OwnSecrets): GatewayError | null {
  return keyAt(bytes, secrets) === -1 ? null : quotedKeyError();
}

/** The same, for what may be of any encoding. */
export function encodedKeyError(bytes: Buffer, secrets: OwnSecrets): GatewayError | null {
  const isWide = secrets.marks.some(({ wide }) => bytes.includes(wide));
  return isWide ? quotedKeyError() : keyError(bytes, secrets);
}

/** Of what was found, nothing is told to the log either. */
export function quotedKeyError(): GatewayError {
  return vendorAccountError(401, 'an answer that holds our key');
}

/** The same for an error that was made of an upstream's words. @returns what may be told */
export function tellable(error: GatewayError, secrets: OwnSecrets): GatewayError {
  if (isVendorAccountError(error)) return error;
  const failure = secretError(`${error.message}\n${error.code ?? ''}\n${error.param ?? ''}`, secrets);
  if (failure === null || failure.vendorAccountStatus !== null) return failure ?? error;
  return new GatewayError(error.kind, failure.message, {
    answered: { status: error.status, code: null },
    retryAfter: error.retryAfter,
    unrepeatable: error.unrepeatable,
  });
}
