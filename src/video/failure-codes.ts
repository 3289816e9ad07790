import { isPolicyCode, isRateLimitCode } from '../protocols/error-formats/upstream-error.js';
import type { TaskFailure } from './task.js';

/*
 * A failure keeps its upstream's code, a word or a number of that vendor. This file translates it for formats with other
 * codes.
 */

const number = /^\d{1,9}$/;
/** Codes of the vendorj format. */
const vendorjNumber = /^50[45]\d\d$/;
/** Codes for content that a vendor's filters refused, in the request or in the video. */
const policyNumber = /^(?:130[01]|5041[1-3]|505(?:1[1-9]|2\d))$/;
const limitNumber = /^(?:130[23]|50429|50430)$/;

/** The kinds of failure that the formats tell apart. */
type FailureKind = 'policy' | 'limit' | 'other';

/** The kind of failure that any vendor's code stands for. */
export function failureKind(code: string): FailureKind {
  if (policyNumber.test(code) || isPolicyCode(code)) return 'policy';
  return limitNumber.test(code) || isRateLimitCode(code) ? 'limit' : 'other';
}

const words: Readonly<Record<FailureKind, string>> = {
  policy: 'content_policy_violation',
  limit: 'rate_limit_exceeded',
  other: 'generation_failed',
};
const statuses: Readonly<Record<FailureKind, number>> = { policy: 400, limit: 429, other: 500 };
const vendorjCodes: Readonly<Record<FailureKind, number>> = { policy: 50511, limit: 50429, other: 50500 };

/** The code in the compat format: a word. */
export function codeWord({ code }: TaskFailure): string {
  return number.test(code) || code === '' ? words[failureKind(code)] : code;
}

/** The code in the generic format: the upstream's own number, else a number like an HTTP status. */
export function codeNumber({ code }: TaskFailure): number {
  return number.test(code) ? Number(code) : statuses[failureKind(code)];
}

/** The code in the vendorj format: the upstream's own number if it is one of that format. */
export function vendorjCode({ code }: TaskFailure): number {
  return vendorjNumber.test(code) ? Number(code) : vendorjCodes[failureKind(code)];
}
