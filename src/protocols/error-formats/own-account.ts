/**
 * What an upstream says of the gateway's own key or account there, in whichever answer, event or reason. It is nobody
 * else's business: it often quotes a part of the key or names the organisation.
 */
import { GatewayError } from '../../errors.js';
import { isObject, type JsonObject, parseObject, textOrNull } from '../../wire/json.js';

/**
 * The status that says the same: the key is not accepted, the account is spent, or it has not the right. The last may
 * be a matter of what was asked.
 */
export type AccountStatus = 401 | 402 | 403;

/** Codes, types and reasons as vendors write them, in lower case and without what stands between their words. */
const keyWords: ReadonlySet<string> = new Set([
  'invalidapikey',
  'invalidapikeyerror',
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
const accountWords: ReadonlySet<string> = new Set([
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
const notWord = /[^a-z0-9]/g;
const longestWord = 100;

/*
 * Some vendors have no more than a sentence for it. Only how it begins counts: what a caller sent may be repeated
 * further on, and no caller may bring a key into disrepute.
 */
const keySentence =
  /^(?:(?:incorrect|invalid|missing|no|unknown|expired) (?:api[ _-]?key|x-api-key|authentication|authorization|auth token|bearer token|access token)\b|(?:your |the )?(?:provided )?api[ _-]?key(?: you)?(?: provided)?(?:: ?\S+)? (?:is |was |has been )?(?:not (?:valid|found|active)|invalid|incorrect|expired|missing|disabled|revoked|suspended|blocked)|(?:this|your) (?:api key|organi[sz]ation|account|project|workspace) (?:has been|is) (?:disabled|suspended|deactivated|blocked|revoked|expired))/i;
const accountSentence =
  /^(?:your (?:credit |account )?balance is (?:too low|not enough|insufficient)|insufficient (?:balance|credits?|funds|account balance)|(?:this|your) (?:account|organi[sz]ation|team|workspace)\b[^.]{0,60}\b(?:in arrears|overdue|out of credits?|no credits?|not have (?:enough|any) credits?|doesn't have any credits?|used all available credits)|account \S+ is suspended|you have (?:reached your specified (?:workspace )?api usage limits|run out of credits)|this request requires more credits|(?:您的)?(?:账户|账号|帐户)?(?:余额不足|已欠费))/i;

/** A refusal of what was asked, and of where it is asked from. */
const contentWord =
  /contentpolicy|contentfilter|contentblocked|contentmoderat|moderat|safety|policyviolation|usagepolic|responsibleai|sensitive|datainspection|flagged|harmful|prohibitedcontent|unsupportedcountry|unsupportedregion|unsupportedlocation/;
const contentSentence =
  /\bcontent (?:policy|policies|filter|moderation)|\bmoderation\b|\bflagged\b|\busage polic|\bacceptable use|\bsafety\b|\bharmful\b|\bviolat\w* [^.]{0,60}polic|\b(?:available|supported) in (?:your|this) (?:country|region|location|territory)|\bcountry, region,? or territory/i;
const accountSubject =
  /api[ _-]?key|credential|\btokens? (?:is|was|has|provided)|organi[sz]ation|\bproject\b|billing|\baccount|\bquota|\bcredits?\b|suspended|subscription|permission/i;

const longestCause = 8192;
/** Of a list of errors, or of choices that may have one. */
const mostErrors = 16;

/** What an event's `error` stands in: the event, its response, or what is said of how that ended (realtime). */
function holderOf(body: JsonObject): JsonObject {
  const inner = isObject(body.response) ? body.response : body;
  return isObject(inner.status_details) ? inner.status_details : inner;
}

/** The error of a parsed answer or event where it stands in a member of its own, or null. */
function ownErrorMember(inner: JsonObject): JsonObject | null {
  if (isObject(inner.error)) return inner.error;
  for (const list of [inner.errors, inner.choices]) {
    if (!Array.isArray(list)) continue;
    const first = list.slice(0, mostErrors).filter(isObject);
    const found = list === inner.choices ? first.map(({ error }) => error).find(isObject) : first[0];
    if (found !== undefined) return found;
  }
  if (isObject(inner.detail)) return inner.detail;
  const words = [inner.error, inner.detail].find((each) => typeof each === 'string');
  return words !== undefined && inner.message === undefined ? { ...inner, message: words } : null;
}

/** The `error` of a parsed answer or event, wherever it stands; of some it is the whole. */
function errorMember(body: JsonObject): JsonObject {
  const inner = holderOf(body);
  return ownErrorMember(inner) ?? inner;
}

/** A status as a number or a text; 0 for anything else. */
function statusIn(value: unknown): number {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && /^\d{3}$/.test(value) ? Number(value) : 0;
}

/** What an `error` says of the gateway's account, or null. */
export function accountStatus(error: JsonObject): AccountStatus | null {
  const numbers = [error.code, error.status, error.status_code].map(statusIn);
  if (numbers.includes(402)) return 402;
  if (numbers.includes(401)) return 401;
  const words = wordsOf(error);
  if (words.some((word) => accountWords.has(word))) return 402;
  if (words.some((word) => keyWords.has(word))) return 401;
  const message = textOrNull(error.message) ?? textOrNull(error.msg) ?? '';
  if (accountSentence.test(message)) return 402;
  if (keySentence.test(message)) return 401;
  const isDenied = numbers.includes(403) || words.some((word) => rightWords.has(word));
  return isDenied && !isOfContent(error) ? 403 : null;
}

/**
 * What an error answer says of the gateway's account, or null: 401 and 402 always do, 403 unless it is about what was
 * asked, any other status where its body says so.
 * @param body parsed; null for what is no JSON object
 */
export function accountStatusOf(status: number, body: JsonObject | null): AccountStatus | null {
  if (status === 402) return 402;
  const said = body === null ? null : accountStatus(errorMember(body));
  if (status === 401 || status === 407) return said === 402 ? 402 : 401;
  if (status === 403) {
    if (said !== null) return said;
    return body !== null && isOfContent(errorMember(body)) ? null : 403;
  }
  // Rights are told by their own status alone: a model that is not open is a 404 of the caller's.
  return said === 403 ? null : said;
}

/** The same of a reason, such as that of a closing WebSocket: its words count wherever they stand. */
export function isAccountReason(reason: string): boolean {
  const words = reason.split(/[.:\s]+/).map(wordOf);
  if (words.some((word) => keyWords.has(word) || accountWords.has(word))) return true;
  return (
    keySentence.test(reason) ||
    accountSentence.test(reason) ||
    /api[ _-]?key|credential|organi[sz]ation|billing/i.test(reason)
  );
}

/**
 * What callers are told in place of such an answer.
 * @param cause what it was, for the log alone, where its secrets are masked
 */
export function accountError(status: AccountStatus, cause: string): GatewayError {
  return new GatewayError('upstream_error', "The upstream does not accept the gateway's account.", {
    accountStatus: status,
    cause: cause.slice(0, longestCause),
  });
}

/** The failure that an `error` member tells of the gateway's account, or null. */
export function accountFailure(error: unknown): GatewayError | null {
  const body = typeof error === 'string' ? { message: error } : error;
  if (!isObject(body)) return null;
  const status = accountStatus(body);
  return status === null ? null : accountError(status, JSON.stringify(error));
}

/**
 * The same of a whole answer, or of an event's data.
 * @param isError it is called an error by what it came in
 */
export function accountFailureOf(data: string, isError = false): GatewayError | null {
  const body = parseObject(data);
  if (body === null) return null;
  const inner = holderOf(body);
  const error = ownErrorMember(inner);
  if (error !== null) return accountFailure(error);
  // Some have no more than these two in place of what was asked for.
  const isBare = typeof inner.code === 'string' && typeof inner.message === 'string';
  return isError || isBare || body.type === 'error' ? accountFailure(inner) : null;
}

function isOfContent(error: JsonObject): boolean {
  if (wordsOf(error).some((word) => contentWord.test(word))) return true;
  if (isObject(error.metadata) && (error.metadata.flagged_input ?? error.metadata.reasons)) return true;
  const message = textOrNull(error.message) ?? '';
  return contentSentence.test(message) && !accountSubject.test(message);
}

/** What an error calls itself, and its details and inner errors call it (google.rpc.ErrorInfo). */
function wordsOf(error: JsonObject): readonly string[] {
  const details = Array.isArray(error.details) ? error.details.filter(isObject) : [];
  const inner = isObject(error.innererror) ? [error.innererror] : [];
  const said = [error, ...inner, ...details.slice(0, 16)].flatMap((each) => [
    each.code,
    each.type,
    each.status,
    each.reason,
  ]);
  return said.flatMap((word) => (typeof word === 'string' ? [wordOf(word)] : []));
}

function wordOf(text: string): string {
  return text.slice(0, longestWord).toLowerCase().replace(notWord, '');
}
