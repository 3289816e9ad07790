import type { OwnSecrets } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import { vendorAccountError } from './vendor-account-error.js';

/*
 * What an upstream says when it refuses something may repeat what it was sent: our key, or whose it is. The words of
 * every refusal are looked through before a client gets them; answers are not (see the manual).
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
export function secretFailure(words: string, { keys, others }: OwnSecrets): GatewayError | null {
  const texts = readings(words);
  const holds = (secret: string): boolean => texts.some((text) => text.includes(secret));
  if (keys.some(holds)) return vendorAccountError(401, words);
  if (!others.some(holds) && !texts.some((text) => accountName.test(text))) return null;
  return new GatewayError('upstream_error', 'The upstream answered with an error that names its account.');
}

/** The same for an error that was made of an upstream's words. @returns what may be told */
export function tellable(error: GatewayError, secrets: OwnSecrets): GatewayError {
  if (error.vendorAccountStatus !== null) return error;
  const failure = secretFailure(`${error.message}\n${error.code ?? ''}\n${error.param ?? ''}`, secrets);
  if (failure === null || failure.vendorAccountStatus !== null) return failure ?? error;
  return new GatewayError(error.kind, failure.message, {
    answered: { status: error.status, code: null },
    retryAfter: error.retryAfter,
    unrepeatable: error.unrepeatable,
  });
}
