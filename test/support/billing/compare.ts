import type { LedgerRecord } from '../../../src/usage/ledger-record.js';
import type { CallEnd } from './calls.js';
import type { BillLine } from './upstream.js';

/** The part of a ledger line that concerns money. */
export type Charged = Pick<
  LedgerRecord,
  | 'requestId'
  | 'keyId'
  | 'model'
  | 'target'
  | 'inputTokens'
  | 'outputTokens'
  | 'cachedTokens'
  | 'cacheWrittenTokens'
  | 'tokensKnown'
  | 'outcome'
  | 'costNanoUsd'
  | 'paidNanoUsd'
>;

/** What both sides report for one request. */
export interface Difference {
  readonly requestId: string;
  readonly bills: readonly BillLine[];
  readonly lines: readonly Charged[];
  /** What is charged above the bill with its factor; negative if less is charged. */
  readonly offNanoUsd: number;
  /** The same for what the ledger says that the vendor is owed. */
  readonly offPaidNanoUsd: number;
  /** Lines of calls, not of attempts or corrections. */
  readonly calls: number;
}

interface Comparison {
  /** Calls whose bill and lines agree exactly. */
  readonly exact: number;
  /** Calls whose lines are marked as inexact and are close enough. */
  readonly near: number;
  /** Requests whose bill and lines differ. */
  readonly different: readonly Difference[];
  /** Requests with more than one line of a call, however close they are to the bill. */
  readonly doubled: readonly string[];
  /** What clients should be charged, and what they are charged. */
  readonly billedNanoUsd: number;
  readonly chargedNanoUsd: number;
}

/**
 * How far a line that is marked as an estimate may be from the bill: a share of it, and a margin for the ends of
 * texts.
 */
const nearShare = 0.2;
const nearNanoUsd = 100_000;

/** Compares a vendor's bill with the ledger, request by request. @param ends what clients saw of their calls */
export function compare(
  bill: readonly BillLine[],
  ledger: readonly Charged[],
  ends: readonly CallEnd[],
): Comparison {
  const billed = grouped(bill);
  const ofTask = new Map(ends.map(({ taskId, requestId }) => [taskId, requestId]));
  const charged = grouped(
    ledger.map((line) => ({ ...line, requestId: ofTask.get(line.requestId) ?? line.requestId })),
  );
  const different: Difference[] = [];
  const doubled: string[] = [];
  let exact = 0;
  let near = 0;
  let billedNanoUsd = 0;
  let chargedNanoUsd = 0;
  for (const requestId of new Set([...billed.keys(), ...charged.keys()])) {
    const bills = billed.get(requestId) ?? [];
    const lines = charged.get(requestId) ?? [];
    const billedHere = sum(bills.map((line) => line.nanoUsd));
    const owed = sum(bills.map((line) => line.chargeNanoUsd));
    const paid = sum(lines.map((line) => line.costNanoUsd));
    const offPaidNanoUsd = sum(lines.map(paidFor)) - billedHere;
    billedNanoUsd += owed;
    chargedNanoUsd += paid;
    const marked = lines.filter(isMarked);
    const calls = lines.filter(isCall).length;
    // A target that never answered may or may not have billed what it was sent.
    const unheard = sum(marked.filter(({ outcome }) => outcome === 'attempt').map(paidFor));
    const isNear = (off: number, beside = 0): boolean =>
      Math.abs(off) <= owed * nearShare + nearNanoUsd + beside;
    const offNanoUsd = paid - owed;
    if (calls > 1) doubled.push(requestId);
    if (offNanoUsd === 0 && offPaidNanoUsd === 0 && calls <= 1) exact++;
    else if (calls <= 1 && marked.length > 0 && isNear(offNanoUsd) && isNear(offPaidNanoUsd, unheard)) near++;
    else different.push({ requestId, bills, lines, offNanoUsd, offPaidNanoUsd, calls });
  }
  return { exact, near, different, doubled, billedNanoUsd, chargedNanoUsd };
}

/**
 * Returns what a vendor is owed for a line. It is unknown for a failed attempt, and NaN for any other that was sent.
 */
function paidFor({ outcome, target, paidNanoUsd }: Charged): number {
  return paidNanoUsd ?? (outcome === 'attempt' || target === null ? 0 : Number.NaN);
}

function isMarked({ tokensKnown }: Charged): boolean {
  return tokensKnown === 'partial' || tokensKnown === 'estimated';
}

/** Other lines are attempts of a call, and corrections of videos. */
function isCall({ outcome }: Charged): boolean {
  return outcome !== 'attempt' && outcome !== 'correction';
}

function grouped<Line extends { readonly requestId: string }>(lines: readonly Line[]): Map<string, Line[]> {
  const groups = new Map<string, Line[]>();
  for (const line of lines) {
    const group = groups.get(line.requestId);
    if (group === undefined) groups.set(line.requestId, [line]);
    else group.push(line);
  }
  return groups;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
