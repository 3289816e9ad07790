/**
 * Detects what an upstream says about the gateway's own key or account, in any answer, event or close reason, and
 * replaces it for callers. It must not reach them: it often quotes a part of the key or names the organisation.
 */
import type { OwnSecrets } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import { withoutJsonEscapes, withoutUrlEscapes } from '../../wire/escapes.js';
import { isObject, type JsonObject, listOf, parseJson, textOrNull } from '../../wire/json.js';
import { needleAt } from '../../wire/json-skip.js';

/**
 * The status that describes the fault: the key is not accepted, the account's money is spent, or it lacks a permission.
 * The last may depend on the request.
 */
export type VendorAccountStatus = 401 | 402 | 403;

/** An error about the gateway's account at an upstream. */
export interface VendorAccountError extends GatewayError {
  readonly vendorAccountStatus: VendorAccountStatus;
}

/** Tells whether `vendorAccountError` made an error. */
export function isVendorAccountError(error: GatewayError | null): error is VendorAccountError {
  return error !== null && error.vendorAccountStatus !== null;
}

const longestCause = 8192;

/**
 * Returns the error that replaces an answer about the gateway's account.
 * @param cause the answer, only for the log, which masks its secrets
 */
export function vendorAccountError(status: VendorAccountStatus, cause: string): GatewayError {
  return new GatewayError('upstream_error', "The upstream does not accept the gateway's account.", {
    vendorAccountStatus: status,
    cause: cause.slice(0, longestCause),
  });
}

/** Most entries of a list of errors, or of choices that may have one. */
const mostErrors = 16;
/** Most members of an error, in all of its objects. */
const mostMembers = 64;

/** The members of an error, with names normalised across vendors: `statuscode`, `msg`, `errorcode`. */
type Said = Readonly<Record<string, unknown>>;

function saidBy(error: JsonObject): Said {
  return Object.fromEntries(
    Object.entries(error)
      .slice(0, mostMembers)
      .map(([name, value]) => [wordOf(name), value]),
  );
}

/**
 * Relation of a part of an answer to its protocol. `own`: it has the protocol's members, and an error only beside them.
 * `strange`: it does not, and may be an error instead. `error`: its context marks it as an error.
 */
type Standing = 'own' | 'strange' | 'error';

/** Returns the errors of a parsed answer or event, wherever they stand. A value may itself be an error. */
function errorsOf(value: unknown, standing: Standing): readonly Said[] {
  if (Array.isArray(value)) return listed(value).flatMap((each) => errorsOf(each, standing));
  if (typeof value === 'string') return standing === 'own' || value === '' ? [] : [{ message: value }];
  if (!isObject(value)) return [];
  // The event, its response, or the details of how that ended (realtime).
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

/** @param beside the members beside this one */
function errorsIn(member: unknown, beside: Said): readonly Said[] {
  if (Array.isArray(member)) return listed(member).flatMap((each) => errorsIn(each, {}));
  if (typeof member === 'string' && member !== '')
    return [{ ...beside, message: textOrNull(beside.message) ?? member, reason: member }];
  // An error with a place in the request quotes the request.
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

/** Returns a status for a number or a text; 0 for anything else. */
function statusIn(value: unknown): number {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && /^\d{3}$/.test(value) ? Number(value) : 0;
}

/** Returns what an `error` says about the gateway's account, or null. */
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
  // Google uses the same words for a short overload.
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
 * Returns what an error answer says about the gateway's account, or null. 401 and 402 always are about it. 403 is
 * unless it is about the request, and any other status if its body says so.
 * @param body parsed; null for anything but JSON
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
  // Only the status reports missing permissions: a model that is not available is a 404 for the caller.
  return said === 403 ? null : said;
}

/** Includes the statuses of a proxy and of an expired token. */
const unaccepted: readonly number[] = [401, 407, 498];

function firstStatus(errors: readonly Said[]): VendorAccountStatus | null {
  for (const error of errors) {
    const status = vendorAccountStatus(error);
    if (status !== null) return status;
  }
  return null;
}

/**
 * Close codes of a WebSocket that report it without a reason: registered ones, and those that many servers derive from
 * a status.
 */
const closeCodes: ReadonlyMap<number, VendorAccountStatus> = new Map([
  [3000, 401],
  [3003, 403],
  [4401, 401],
  [4402, 402],
  [4403, 403],
]);

/**
 * Returns what the end of a WebSocket says about the gateway's account, or null. Words of a close reason count at any
 * position.
 */
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

/** Returns the failure of the gateway's account that an `error` member reports, or null. */
export function vendorAccountErrorIn(error: unknown): GatewayError | null {
  const status = firstStatus(errorsIn(error, {}));
  return status === null ? null : vendorAccountError(status, JSON.stringify(error));
}

/**
 * Returns the error for a whole answer of a successful status, the data of an event, or a message that is about the
 * gateway's account or would reveal it by an error with one of its secrets. Null if it may pass.
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

/**
 * Returns the error to report for an answer of a successful status that was an error. By its text it may be about the
 * gateway's account.
 */
export function errorToReport(error: GatewayError, text: string, secrets: OwnSecrets): GatewayError {
  const ofVendorAccount = vendorAccountErrorOf(text, 'strange', secrets);
  return isVendorAccountError(ofVendorAccount) ? ofVendorAccount : reportableError(error, secrets);
}

/** A longer text is not a sentence about an account. */
const longestText = 64 * 1024;

/** A failed parse takes as long as a successful one of some thousand characters. */
const jsonStart = /^\s*[[{"]/;

/** Parses a text. One that is not JSON is its own value. */
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

/**
 * Returns the names of an error, of its details and inner errors (google.rpc.ErrorInfo), and the first word of its
 * message.
 */
function wordsOf(error: Said): readonly string[] {
  const inner = [...listed(error.details), error.innererror, error.detail].filter(isObject).map(saidBy);
  const said = [error, ...inner].flatMap((each) => [
    ...[each.code, each.type, each.status, each.reason, each.errorcode, each.errortype],
  ]);
  const [, begin] = /^([\w.]{4,60}): /.exec(messageOf(error)) ?? [];
  return [...said, begin].flatMap((word) => (isText(word) ? [wordOf(word), lastWord(word)] : []));
}

/** Returns the last part of a name in a namespace: `oauth.v2.InvalidApiKey`, `litellm.AuthenticationError`. */
function lastWord(word: string): string {
  return wordOf(word.slice(word.lastIndexOf('.', longestName) + 1));
}

const longestName = 100;

/**
 * Codes, types and reasons for the gateway's own key at an upstream, as vendors write them, in lower case and without
 * separators.
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
/** Numbers by which alone MiniMax reports it (`base_resp.status_code`). */
const vendorAccountCodes: ReadonlyMap<unknown, VendorAccountStatus> = new Map([
  [1004, 401],
  [2049, 401],
  [1008, 402],
]);
const notWord = /[^a-z0-9]/g;
const longestWord = 100;

/*
 * Some vendors report it only in a sentence. Only the beginning of the sentence counts: the rest may repeat the
 * caller's text, and no caller may bring a key into disrepute.
 */
const keySentence =
  /^(?:(?:incorrect|invalid|wrong|bad|missing|no|unknown|expired) (?:api[ _-]?(?:key|token|secret)|x-api-key|authentication|authorization|auth token|bearer token|access token)\b|(?:authentication|authorization|login) (?:fail(?:s|ed|ure)?|error|required)\b|error code: 401\b|(?:your |the )?(?:provided )?api[ _-]?(?:key|token)(?: you)?(?: provided)?(?:: ?\S+)? (?:is |was |has been )?(?:not (?:valid|found|active|correct)|wrong|invalid|incorrect|expired|missing|disabled|revoked|suspended|blocked)|(?:this|your) (?:api key|organi[sz]ation|org|account|project|workspace)(?: \S+)? (?:has been|is|was) (?:disabled|suspended|deactivated|blocked|revoked|expired))/i;
const vendorAccountSentence =
  /^(?:your (?:credit |account )?balance is (?:too low|not enough|insufficient|negative)|billing (?:hard |soft )?limit (?:has been |was )?reached|(?:this|your|the) (?:account|api key|billing account|organi[sz]ation|org|project|team|workspace)\b[^.]{0,60}\bexceeded (?:its|your|the) [^.]{0,30}(?:spend|spending|billing|usage|credit) (?:cap|limit)|error code: 402\b|insufficient (?:balance|credits?|funds|account balance)|(?:this|your) (?:account|organi[sz]ation|team|workspace)\b[^.]{0,60}\b(?:in arrears|overdue|out of credits?|no credits?|not have (?:enough|any) credits?|doesn't have any credits?|used all available credits)|account \S+ is suspended|(?:(?:this|your|the) )?account (?:(?:is|was|has been) )?(?:suspended|overdue|disabled|deactivated|in arrears)\b|you have (?:reached your specified (?:workspace )?api usage limits|run out of credits)|this request requires more credits|(?:您的)?(?:账户|账号|帐户)?(?:余额不足|已欠费))/i;

/** A refusal because of the content, or of the place that the request came from. */
const contentWord =
  /contentpolicy|contentfilter|contentblocked|contentmoderat|moderat|safety|policyviolation|usagepolic|responsibleai|sensitive|datainspection|flagged|harmful|prohibitedcontent|unsupportedcountry|unsupportedregion|unsupportedlocation/;
const contentSentence =
  /\bcontent (?:policy|policies|filter|moderation)|\bmoderation\b|\bflagged\b|\busage polic|\bacceptable use|\bsafety\b|\bharmful\b|\bviolat\w* [^.]{0,60}polic|\b(?:available|supported) in (?:your|this) (?:country|region|location|territory)|\bcountry, region,? or territory/i;
const vendorAccountSubject =
  /api[ _-]?key|credential|\btokens? (?:is|was|has|provided)|organi[sz]ation|\borg\b|\bproject\b|billing|\baccount|\bquota|\bcredits?\b|suspended|subscription|permission/i;

/** Normalises a code, a type or a reason for the lists above. */
function wordOf(text: string): string {
  return text.slice(0, longestWord).toLowerCase().replace(notWord, '');
}

/*
 * An upstream that refuses a request may repeat what it was sent: the gateway's key, or the key's owner. The words of
 * every refusal are searched before a client gets them, in any form. Answers are searched for the keys as they are.
 */

/** JSON in JSON in JSON: errors are passed on as texts of other errors. */
const mostLayers = 4;
/** Vendors' ids of accounts. */
const accountName = /\b(?:org-|proj_|wrkspc_|acct_)[A-Za-z0-9]{6,}/;

/** Returns every form in which a text may be meant: unchanged, without JSON's escapes, and without a URL's. */
export function readings(words: string): readonly string[] {
  const found = [words];
  let text = words;
  for (let layer = 0; layer < mostLayers && text.includes('\\'); layer++) {
    text = withoutJsonEscapes(text);
    found.push(text);
  }
  if (text.includes('%')) found.push(withoutUrlEscapes(text));
  return found;
}

/**
 * Returns the error that replaces an upstream's words with a secret of the gateway; null if they contain none. No one
 * else can name the gateway's key, so words that quote it are about its account. Secrets that others may know are only
 * withheld: otherwise a caller could bring a key into disrepute with them.
 */
export function secretError(words: string, { keys, encoded, others }: OwnSecrets): GatewayError | null {
  const texts = readings(words);
  const holds = (secret: string): boolean => texts.some((text) => text.includes(secret));
  if (keys.some(holds) || encoded.some(holds)) return vendorAccountError(401, words);
  if (!others.some(holds) && !texts.some((text) => accountName.test(text))) return null;
  return new GatewayError('upstream_error', 'The upstream answered with an error that names its account.');
}

/**
 * Returns the offset of the first key of the gateway in any answer, or -1. Takes about 60 ns a key and call.
 * @param bytes a key that is cut at their ends is not found
 */
export function keyAt(bytes: Buffer, { marks }: OwnSecrets): number {
  let first = -1;
  for (const { needle } of marks) {
    const at = needleAt(bytes, needle, 0);
    if (at !== -1 && (first === -1 || at < first)) first = at;
  }
  return first;
}

/** Returns the error that replaces an answer with a key of the gateway, or null. */
export function keyError(bytes: Buffer, secrets: OwnSecrets): GatewayError | null {
  return keyAt(bytes, secrets) === -1 ? null : quotedKeyError();
}

/** The same for bytes in any encoding. */
export function encodedKeyError(bytes: Buffer, secrets: OwnSecrets): GatewayError | null {
  const isWide = secrets.marks.some(({ wide }) => bytes.includes(wide));
  return isWide ? quotedKeyError() : keyError(bytes, secrets);
}

/** The found text is not logged either. */
export function quotedKeyError(): GatewayError {
  return vendorAccountError(401, 'an answer that holds our key');
}

/**
 * The same for an error made from an upstream's words.
 * @returns the error to report
 */
export function reportableError(error: GatewayError, secrets: OwnSecrets): GatewayError {
  if (isVendorAccountError(error)) return error;
  const failure = secretError(`${error.message}\n${error.code ?? ''}\n${error.param ?? ''}`, secrets);
  if (failure === null || failure.vendorAccountStatus !== null) return failure ?? error;
  return new GatewayError(error.kind, failure.message, {
    answered: { status: error.status, code: null },
    retryAfter: error.retryAfter,
    unrepeatable: error.unrepeatable,
  });
}
