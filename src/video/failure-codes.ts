import { isLimitWord } from '../protocols/error-formats/upstream-error.js';
import type { TaskFailure } from './task.js';

/*
 * A failure keeps the code that its upstream gave it, a word or a number of that vendor. Here is what it becomes in
 * the formats that know other codes.
 */

const number = /^\d{1,9}$/;
/** Numbers of the vendorj format, of content that its filters refused: of the request, and of the video. */
const vendorjNumber = /^50[45]\d\d$/;
const policyNumber = /^(?:130[01]|5041[1-3]|505(?:1[1-9]|2\d))$/;
const limitNumber = /^(?:130[23]|50429|50430)$/;
const policyWord = /policy|moderation|sensitive|safety|filter/i;

/** What a failure comes down to. */
type FailureKind = 'policy' | 'limit' | 'other';

/** What the code of a failure means, in whichever vendor's words. */
export function failureKind(code: string): FailureKind {
  if (policyNumber.test(code) || policyWord.test(code)) return 'policy';
  return limitNumber.test(code) || isLimitWord(code) ? 'limit' : 'other';
}

const words: Readonly<Record<FailureKind, string>> = {
  policy: 'content_policy_violation',
  limit: 'rate_limit_exceeded',
  other: 'generation_failed',
};
const statuses: Readonly<Record<FailureKind, number>> = { policy: 400, limit: 429, other: 500 };
const vendorjCodes: Readonly<Record<FailureKind, number>> = { policy: 50511, limit: 50429, other: 50500 };

/** The code as the compat format has it: a word. */
export function codeWord({ code }: TaskFailure): string {
  return number.test(code) || code === '' ? words[failureKind(code)] : code;
}

/** The code as the generic format has it: the upstream's own number, else one like an HTTP status. */
export function codeNumber({ code }: TaskFailure): number {
  return number.test(code) ? Number(code) : statuses[failureKind(code)];
}

/** The code as the vendorj format has it: the upstream's own number where it is one of that vendor. */
export function vendorjCode({ code }: TaskFailure): number {
  return vendorjNumber.test(code) ? Number(code) : vendorjCodes[failureKind(code)];
}
