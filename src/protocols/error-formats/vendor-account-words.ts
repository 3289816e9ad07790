import type { VendorAccountStatus } from './vendor-account-error.js';

/*
 * By which words it is told that an upstream's error is about the gateway's own key or account there: see
 * `vendor-account.ts`.
 */

/** Codes, types and reasons as vendors write them, in lower case and without what stands between their words. */
export const keyWords: ReadonlySet<string> = new Set([
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
export const vendorAccountWords: ReadonlySet<string> = new Set([
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
export const rightWords: ReadonlySet<string> = new Set([
  'permissionerror',
  'permissiondenied',
  'permissiondeniederror',
  'insufficientpermissions',
  'forbidden',
  'accessdenied',
  'accessdeniederror',
]);
/** What MiniMax says by a number alone (`base_resp.status_code`). */
export const vendorAccountCodes: ReadonlyMap<unknown, VendorAccountStatus> = new Map([
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
export const keySentence =
  /^(?:(?:incorrect|invalid|wrong|bad|missing|no|unknown|expired) (?:api[ _-]?(?:key|token|secret)|x-api-key|authentication|authorization|auth token|bearer token|access token)\b|(?:authentication|authorization|login) (?:fail(?:s|ed|ure)?|error|required)\b|error code: 401\b|(?:your |the )?(?:provided )?api[ _-]?(?:key|token)(?: you)?(?: provided)?(?:: ?\S+)? (?:is |was |has been )?(?:not (?:valid|found|active|correct)|wrong|invalid|incorrect|expired|missing|disabled|revoked|suspended|blocked)|(?:this|your) (?:api key|organi[sz]ation|org|account|project|workspace)(?: \S+)? (?:has been|is|was) (?:disabled|suspended|deactivated|blocked|revoked|expired))/i;
export const vendorAccountSentence =
  /^(?:your (?:credit |account )?balance is (?:too low|not enough|insufficient|negative)|billing (?:hard |soft )?limit (?:has been |was )?reached|(?:this|your|the) (?:account|api key|billing account|organi[sz]ation|org|project|team|workspace)\b[^.]{0,60}\bexceeded (?:its|your|the) [^.]{0,30}(?:spend|spending|billing|usage|credit) (?:cap|limit)|error code: 402\b|insufficient (?:balance|credits?|funds|account balance)|(?:this|your) (?:account|organi[sz]ation|team|workspace)\b[^.]{0,60}\b(?:in arrears|overdue|out of credits?|no credits?|not have (?:enough|any) credits?|doesn't have any credits?|used all available credits)|account \S+ is suspended|(?:(?:this|your|the) )?account (?:(?:is|was|has been) )?(?:suspended|overdue|disabled|deactivated|in arrears)\b|you have (?:reached your specified (?:workspace )?api usage limits|run out of credits)|this request requires more credits|(?:您的)?(?:账户|账号|帐户)?(?:余额不足|已欠费))/i;

/** A refusal of what was asked, and of where it is asked from. */
export const contentWord =
  /contentpolicy|contentfilter|contentblocked|contentmoderat|moderat|safety|policyviolation|usagepolic|responsibleai|sensitive|datainspection|flagged|harmful|prohibitedcontent|unsupportedcountry|unsupportedregion|unsupportedlocation/;
export const contentSentence =
  /\bcontent (?:policy|policies|filter|moderation)|\bmoderation\b|\bflagged\b|\busage polic|\bacceptable use|\bsafety\b|\bharmful\b|\bviolat\w* [^.]{0,60}polic|\b(?:available|supported) in (?:your|this) (?:country|region|location|territory)|\bcountry, region,? or territory/i;
export const vendorAccountSubject =
  /api[ _-]?key|credential|\btokens? (?:is|was|has|provided)|organi[sz]ation|\borg\b|\bproject\b|billing|\baccount|\bquota|\bcredits?\b|suspended|subscription|permission/i;

/** A code, a type or a reason as it stands in the lists above. */
export function wordOf(text: string): string {
  return text.slice(0, longestWord).toLowerCase().replace(notWord, '');
}
