import type { Upstream } from '../config/types.js';

/** Characters of an upstream's words that are looked at, and that reach the log. */
const longestRead = 8192;
const longestShown = 1000;
/** At the cut, so that half a secret is not taken for none. */
const cutEdge = 512;
const mask = '[secret]';

/**
 * What looks like a key, or names an account: the vendors' prefixes, tokens in three parts, what stands behind
 * `Bearer`, and accounts by their paths.
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

/** Texts with stars, dots or the like in their middle. */
const run = /[\w+/=*.…-]+/g;
const starred = /(?:\*{3}|x{5}|\.{3}|…)[\w+/=-]/i;
/** Any long run of characters that is no word. */
const longRun = /[\w+/=-]{20,}/g;

/** A text for the log: without the upstream's secrets and what looks like one, and of bounded length. */
export function masked(text: string, upstream: Upstream | null): string {
  let shown = text.length <= longestRead ? text : text.slice(0, longestRead - cutEdge);
  for (const secret of secretsOf(upstream)) shown = shown.replaceAll(secret, mask);
  if (text.length > longestRead) shown = shown.slice(0, -cutEdge);
  for (const pattern of suspicious) shown = shown.replace(pattern, mask);
  // In two steps: an expression for both would look through a run from each of its characters.
  shown = shown.replace(run, (found) => (starred.test(found) ? mask : found));
  shown = shown.replace(longRun, (found) => (/\d/.test(found) ? mask : found));
  return shown.length <= longestShown ? shown : `${shown.slice(0, longestShown)}…`;
}

/** Whether a text holds one of the upstream's secrets as it is. */
export function holdsSecret(body: Buffer, upstream: Upstream): boolean {
  return secretsOf(upstream).some((secret) => body.includes(secret));
}

/** Headers of the config may carry a key under a name of their own. Short values are words. */
function secretsOf(upstream: Upstream | null): readonly string[] {
  if (upstream === null) return [];
  const values = upstream.headers.map(([, value]) => value.replace(/^bearer\s+/i, ''));
  return [...upstream.apiKeys, ...values].filter((value) => value.length >= leastSecret);
}

const leastSecret = 8;
