/**
 * What an upstream says of the gateway's own key or account there, in whichever answer, event or reason, and what callers
 * are told in place of it. It is nobody else's business: it often quotes a part of the key or names the organisation.
 */
import type { OwnSecrets } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import { isObject, type JsonObject, listOf, parseJson, textOrNull } from '../../wire/json.js';
import { needleAt } from '../../wire/json-skip.js';

/**
 * The status that says what is wrong: the key is not accepted, the account is spent, or it has not the right. The last
 * may be a matter of what was asked.
 */
export type VendorAccountStatus = 401 | 402 | 403;

/** An error about the gateway's account at an upstream. */
export interface VendorAccountError extends GatewayError {
  readonly vendorAccountStatus: VendorAccountStatus;
}

/** True for what `vendorAccountError` gives. */
export function isVendorAccountError(error: GatewayError | null): error is VendorAccountError {
  return error !== null && error.vendorAccountStatus !== null;
}

const longestCause = 8192;

/**
 * What callers are told in place of an answer about our account.
 * @param cause what it was, for the log alone, where its secrets are masked
 */
export function vendorAccountError(status: VendorAccountStatus, cause: string): GatewayError {
  return new GatewayError('upstream_error', "The upstream does not accept the gateway's account.", {
    vendorAccountStatus: status,
    cause: cause.slice(0, longestCause),
  });
}

/** Of a list of errors, or of choices that may have one. */
const mostErrors = 16;
/** Of an error, in all that it has. */
const mostMembers = 64;

/** What stands in an error, by names without what vendors spell in different ways: `statuscode`, `msg`, `errorcode`. */
type Said = Readonly<Record<string, unknown>>;

function saidBy(error: JsonObject): Said {
  return Object.fromEntries(
    Object.entries(error)
      .slice(0, mostMembers)
      .map(([name, value]) => [wordOf(name), value]),
  );
}

/**
 * How a piece of an answer stands to its protocol: it has what the protocol's own have, and an error only beside that;
 * it has not, and may be an error in its place; or it is called an error by what it came in.
 */
type Standing = 'own' | 'strange' | 'error';

/** The errors of a parsed answer or event, wherever they stand; of some an error is the whole. */
function errorsOf(value: unknown, standing: Standing): readonly Said[] {
  if (Array.isArray(value)) return listed(value).flatMap((each) => errorsOf(each, standing));
  if (typeof value === 'string') return standing === 'own' || value === '' ? [] : [{ message: value }];
  if (!isObject(value)) return [];
  // The event, its response, or what is said of how that ended (realtime).
  const within = isObject(value.response) ? value.response : value;
  const holder = saidBy(isObject(within.status_details) ? within.status_details : within);
  const { error, errors, detail, fault, choices, baseresp } = holder;
  const found = [error, errors, detail, fault].flatMap((member) => errorsIn(member, holder));
  for (const choice of listed(choices)) if (isObject(choice)) found.push(...errorsIn(choice.error, {}));
  if (isObject(baseresp)) found.push(...errorOfNumber(saidBy(baseresp)));
  const isBare = standing !== 'own' || value.type === 'error' || holder.object === 'error';
  return isBare && found.length === 0 && bareNames.some((name) => name in holder) ? [holder] : found;
}

const bareNames = ['code', 'message', 'msg', 'statuscode', 'errorcode', 'errormessage', 'errormsg'];

/** @param beside what stands beside the member */
function errorsIn(member: unknown, beside: Said): readonly Said[] {
  if (Array.isArray(member)) return listed(member).flatMap((each) => errorsIn(each, {}));
  if (typeof member === 'string' && member !== '')
    return [{ ...beside, message: textOrNull(beside.message) ?? member, reason: member }];
  // With a place in the request it quotes what was asked.
  if (!isObject(member) || 'loc' in member) return [];
  const said = saidBy(member);
  return [said, ...[said.error, said.detail].filter(isObject).map(saidBy)];
}

function errorOfNumber({ statuscode, statusmsg }: Said): readonly Said[] {
  if (statuscode === 0) return [];
  return [{ code: vendorAccountCodes.get(statuscode) ?? null, message: statusmsg }];
}

function listed(value: unknown): readonly unknown[] {
  return listOf(value).slice(0, mostErrors);
}

/** A status as a number or a text; 0 for anything else. */
function statusIn(value: unknown): number {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && /^\d{3}$/.test(value) ? Number(value) : 0;
}

/** What an `error` says of the gateway's account, or null. */
function vendorAccountStatus(error: Said): VendorAccountStatus | null {
  const numbers = [
    ...[error.code, error.status, error.statuscode, error.httpcode, error.httpstatus, error.errorcode],
  ].map(statusIn);
  if (numbers.includes(402)) return 402;
  if (numbers.includes(401)) return 401;
  const words = wordsOf(error);
  if (words.some((word) => vendorAccountWords.has(word))) return 402;
  if (words.some((word) => keyWords.has(word))) return 401;
  const message = messageOf(error);
  // Google says the same of a busy minute.
  if (spentQuota.test(message) && !words.includes('resourceexhausted')) return 402;
  if (vendorAccountSentence.test(message)) return 402;
  if (keySentence.test(message)) return 401;
  const isDenied = numbers.includes(403) || words.some((word) => rightWords.has(word));
  return isDenied && !isOfContent(error) ? 403 : null;
}

const spentQuota = /^you exceeded your current quota, please check your plan and billing/i;

function messageOf(error: Said): string {
  const { message, msg, errormessage, errormsg, faultstring, errordescription } = error;
  return [message, msg, errormessage, errormsg, faultstring, errordescription].find(isText) ?? '';
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

/**
 * What an error answer says of the gateway's account, or null: 401 and 402 always do, 403 unless it is about what was
 * asked, any other status where its body says so.
 * @param body parsed; null for what is no JSON
 */
export function vendorAccountStatusOf(status: number, body: unknown): VendorAccountStatus | null {
  if (status === 402) return 402;
  const errors = errorsOf(body, 'error');
  const said = firstStatus(errors);
  if (unaccepted.includes(status)) return said === 402 ? 402 : 401;
  if (status === 403) {
    if (said !== null) return said;
    return errors.some(isOfContent) ? null : 403;
  }
  // Rights are told by their own status alone: a model that is not open is a 404 of the caller's.
  return said === 403 ? null : said;
}

/** Also a proxy's, and that of an expired token. */
const unaccepted: readonly number[] = [401, 407, 498];

function firstStatus(errors: readonly Said[]): VendorAccountStatus | null {
  for (const error of errors) {
    const status = vendorAccountStatus(error);
    if (status !== null) return status;
  }
  return null;
}

/** Close codes of a WebSocket that say it by themselves: of the registry, and as many make them of a status. */
const closeCodes: ReadonlyMap<number, VendorAccountStatus> = new Map([
  [3000, 401],
  [3003, 403],
  [4401, 401],
  [4402, 402],
  [4403, 403],
]);

/** What the end of a WebSocket says of the gateway's account, or null. Words of a reason count wherever they stand. */
export function vendorAccountErrorOfClose(
  code: number,
  reason: string,
  secrets: OwnSecrets,
): GatewayError | null {
  const words = reason.split(/[.:\s]+/).map(wordOf);
  const isAbout =
    words.some((word) => keyWords.has(word) || vendorAccountWords.has(word)) ||
    keySentence.test(reason) ||
    vendorAccountSentence.test(reason) ||
    /api[ _-]?key|credential|organi[sz]ation|billing|current quota|\baccount\b/i.test(reason);
  const status = closeCodes.get(code) ?? (isAbout ? 401 : null);
  return status === null
    ? secretError(reason, secrets)
    : vendorAccountError(status, `closed with ${code}: ${reason}`);
}

/** The failure that an `error` member tells of the gateway's account, or null. */
export function vendorAccountErrorIn(error: unknown): GatewayError | null {
  const status = firstStatus(errorsIn(error, {}));
  return status === null ? null : vendorAccountError(status, JSON.stringify(error));
}

/**
 * What a whole answer of a good status, an event's data or a message says of the gateway's account, or by which it
 * would get out: an error with our secrets in it. Null for what may pass.
 */
export function vendorAccountErrorOf(
  text: string,
  standing: Standing,
  secrets: OwnSecrets,
): GatewayError | null {
  const errors = errorsOf(parsed(text), standing);
  const status = firstStatus(errors);
  if (status !== null) return vendorAccountError(status, text);
  if (errors.length === 0 && standing === 'own') return null;
  const failure = secretError(text, secrets);
  return errors.length > 0 || failure?.vendorAccountStatus === 401 ? failure : null;
}

/** What may be told of an answer of a good status that came to an error: by its text it may be about our account. */
export function toldError(error: GatewayError, text: string, secrets: OwnSecrets): GatewayError {
  const ofVendorAccount = vendorAccountErrorOf(text, 'strange', secrets);
  return isVendorAccountError(ofVendorAccount) ? ofVendorAccount : tellable(error, secrets);
}

/** A longer text is no sentence about an account. */
const longestText = 64 * 1024;

/** A failed parse takes as long as some thousand characters of a good one. */
const jsonStart = /^\s*[[{"]/;

/** What is no JSON is a text by itself. */
function parsed(text: string): unknown {
  const value = jsonStart.test(text) ? parseJson(text) : undefined;
  if (value !== undefined) return value;
  return text.length <= longestText ? text : null;
}

function isOfContent(error: Said): boolean {
  if (wordsOf(error).some((word) => contentWord.test(word))) return true;
  if (isObject(error.metadata) && (error.metadata.flagged_input ?? error.metadata.reasons)) return true;
  const message = messageOf(error);
  return contentSentence.test(message) && !vendorAccountSubject.test(message);
}

/** What an error calls itself, and its details and inner errors call it (google.rpc.ErrorInfo), or begins with. */
function wordsOf(error: Said): readonly string[] {
  const inner = [...listed(error.details), error.innererror, error.detail].filter(isObject).map(saidBy);
  const said = [error, ...inner].flatMap((each) => [
    ...[each.code, each.type, each.status, each.reason, each.errorcode, each.errortype],
  ]);
  const [, begin] = /^([\w.]{4,60}): /.exec(messageOf(error)) ?? [];
  return [...said, begin].flatMap((word) => (isText(word) ? [wordOf(word), lastWord(word)] : []));
}

/** Of a name in a namespace: `oauth.v2.InvalidApiKey`, `litellm.AuthenticationError`. */
function lastWord(word: string): string {
  return wordOf(word.slice(word.lastIndexOf('.', longestName) + 1));
}

const longestName = 100;

/**
 * Of the gateway's own key at an upstream: codes, types and reasons as vendors write them, in lower case and without
 * what stands between their words.
 */
const keyWords: ReadonlySet<string> = new Set([
  'invalidapikey',
  'invalidapikeyerror',
  'wrongapikey',
  'failedtoresolveapikey',
  'incorrectapikey',
  'missingapikey',
  'apikeyinvalid',
  'apikeyexpired',
  'apikeyserviceblocked',
  'apikeyhttpreferrerblocked',
  'apikeyipaddressblocked',
  'apikeyiosappblocked',
  'apikeyandroidappblocked',
  'apikeydisabled',
  'apikeyrevoked',
  'invalidauthentication',
  'invalidauthenticationerror',
  'invalidcredentials',
  'authenticationerror',
  'authenticationfailed',
  'authenticationrequired',
  'autherror',
  'unauthenticated',
  'unauthorized',
  'unauthorizederror',
  'accesstokenexpired',
  'accesstokentypeunsupported',
  'consumerinvalid',
  'consumersuspended',
  'servicedisabled',
  'mismatchedorganization',
  'mismatchedproject',
  'invalidorganization',
  'organizationdeactivated',
  'organizationdisabled',
  'accountdeactivated',
  'accountsuspended',
  'accountdisabled',
  'accessterminated',
  'userdeactivated',
]);
const vendorAccountWords: ReadonlySet<string> = new Set([
  'insufficientquota',
  'insufficientquotaerror',
  'insufficientuserquota',
  'insufficientbalance',
  'insufficientcredits',
  'insufficientcredit',
  'insufficientfunds',
  'balancenotenough',
  'creditbalancetoolow',
  'outofcredits',
  'billingerror',
  'billingdisabled',
  'billinghardlimitreached',
  'billinglimitreached',
  'billingnotactive',
  'spendlimitreached',
  'paymentrequired',
  'paymentrequirederror',
  'exceededcurrentquota',
  'exceededcurrentquotaerror',
  'arrearage',
  'accountoverdue',
  'accountoverdueerror',
  'allocationquotafreetieronly',
]);
const rightWords: ReadonlySet<string> = new Set([
  'permissionerror',
  'permissiondenied',
  'permissiondeniederror',
  'insufficientpermissions',
  'forbidden',
  'accessdenied',
  'accessdeniederror',
]);
/** What MiniMax says by a number alone (`base_resp.status_code`). */
const vendorAccountCodes: ReadonlyMap<unknown, VendorAccountStatus> = new Map([
  [1004, 401],
  [2049, 401],
  [1008, 402],
]);
const notWord = /[^a-z0-9]/g;
const longestWord = 100;

/*
 * Some vendors have no more than a sentence for it. Only how it begins counts: what a caller sent may be repeated
 * further on, and no caller may bring a key into disrepute.
 */
const keySentence =
  /^(?:(?:incorrect|invalid|wrong|bad|missing|no|unknown|expired) (?:api[ _-]?(?:key|token|secret)|x-api-key|authentication|authorization|auth token|bearer token|access token)\b|(?:authentication|authorization|login) (?:fail(?:s|ed|ure)?|error|required)\b|error code: 401\b|(?:your |the )?(?:provided )?api[ _-]?(?:key|token)(?: you)?(?: provided)?(?:: ?\S+)? (?:is |was |has been )?(?:not (?:valid|found|active|correct)|wrong|invalid|incorrect|expired|missing|disabled|revoked|suspended|blocked)|(?:this|your) (?:api key|organi[sz]ation|org|account|project|workspace)(?: \S+)? (?:has been|is|was) (?:disabled|suspended|deactivated|blocked|revoked|expired))/i;
const vendorAccountSentence =
  /^(?:your (?:credit |account )?balance is (?:too low|not enough|insufficient|negative)|billing (?:hard |soft )?limit (?:has been |was )?reached|(?:this|your|the) (?:account|api key|billing account|organi[sz]ation|org|project|team|workspace)\b[^.]{0,60}\bexceeded (?:its|your|the) [^.]{0,30}(?:spend|spending|billing|usage|credit) (?:cap|limit)|error code: 402\b|insufficient (?:balance|credits?|funds|account balance)|(?:this|your) (?:account|organi[sz]ation|team|workspace)\b[^.]{0,60}\b(?:in arrears|overdue|out of credits?|no credits?|not have (?:enough|any) credits?|doesn't have any credits?|used all available credits)|account \S+ is suspended|(?:(?:this|your|the) )?account (?:(?:is|was|has been) )?(?:suspended|overdue|disabled|deactivated|in arrears)\b|you have (?:reached your specified (?:workspace )?api usage limits|run out of credits)|this request requires more credits|(?:您的)?(?:账户|账号|帐户)?(?:余额不足|已欠费))/i;

/** A refusal of what was asked, and of where it is asked from. */
const contentWord =
  /contentpolicy|contentfilter|contentblocked|contentmoderat|moderat|safety|policyviolation|usagepolic|responsibleai|sensitive|datainspection|flagged|harmful|prohibitedcontent|unsupportedcountry|unsupportedregion|unsupportedlocation/;
const contentSentence =
  /\bcontent (?:policy|policies|filter|moderation)|\bmoderation\b|\bflagged\b|\busage polic|\bacceptable use|\bsafety\b|\bharmful\b|\bviolat\w* [^.]{0,60}polic|\b(?:available|supported) in (?:your|this) (?:country|region|location|territory)|\bcountry, region,? or territory/i;
const vendorAccountSubject =
  /api[ _-]?key|credential|\btokens? (?:is|was|has|provided)|organi[sz]ation|\borg\b|\bproject\b|billing|\baccount|\bquota|\bcredits?\b|suspended|subscription|permission/i;

/** A code, a type or a reason as it stands in the lists above. */
function wordOf(text: string): string {
  return text.slice(0, longestWord).toLowerCase().replace(notWord, '');
}

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
