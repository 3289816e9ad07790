import type { Upstream } from '../config/types.js';
import { shortened } from '../errors.js';
import { readings } from '../protocols/error-formats/vendor-account.js';

/** Characters of an upstream's message that are searched, and that reach the log. */
const longestRead = 8192;
const longestShown = 1000;
/** Characters that are dropped where a text is cut, since a truncated secret is not recognised. */
const cutEdge = 512;
const mask = '[secret]';

/**
 * Patterns of API keys and account names: the vendors' prefixes, tokens in three parts, what follows `Bearer`, and accounts in
 * paths.
 */
const suspicious = [
  /\bbearer\s+[^\s"'\\,;]+/gi,
  /\b(?:sk|pk|rk|ak|sess|gsk|xai|nvapi|pplx|ghp|hf|r8|key|org|organization|proj|project|user|acct|account|team|ws|wrkspc)[-_][\w*.…+/=-]{4,}/gi,
  /\bAIza[\w*.…-]{4,}/g,
  /\bya29\.[\w-]+/g,
  /\b(?:AKIA|ASIA)[A-Z0-9*]{8,}/g,
  /\beyJ[\w-]+(?:\.[\w-]*){1,2}/g,
  /\b(?:projects?|organi[sz]ations?|accounts?|workspaces?)\/[\w.-]+/gi,
  /\b(?:projects?|organi[sz]ations?|accounts?|workspaces?)[ :=]+['"]?[\w-]*\d[\w-]{3,}/gi,
];

/** Keys that the vendor has partly masked. */
const run = /[\w+/=*.…-]+/g;
const starred = /(?:\*{3}|x{5}|\.{3}|…)[\w+/=-]/i;
/** Any long run of characters. Only those with a digit are masked. */
const longRun = /[\w+/=-]{20,}/g;

/** Returns a text for the log, of bounded length, with secrets of the upstream and everything that looks like one masked. */
export function masked(text: string, upstream: Upstream | null): string {
  const secrets = allSecrets(upstream);
  const read = text.length <= longestRead ? text : text.slice(0, longestRead);
  // If a secret contains escapes, the decoded text is shown.
  let shown = readings(read).findLast((each) => secrets.some((secret) => each.includes(secret))) ?? read;
  for (const secret of secrets) shown = shown.replaceAll(secret, mask);
  if (text.length > longestRead) shown = shown.slice(0, -cutEdge);
  for (const pattern of suspicious) shown = shown.replace(pattern, mask);
  // In two steps: one expression for both would search a run from each of its characters.
  shown = shown.replace(run, (found) => (starred.test(found) ? mask : found));
  shown = shown.replace(longRun, (found) => (/\d/.test(found) ? mask : found));
  return shortened(shown, longestShown);
}

function allSecrets(upstream: Upstream | null): readonly string[] {
  return upstream === null ? [] : [...upstream.secrets.keys, ...upstream.secrets.others];
}
