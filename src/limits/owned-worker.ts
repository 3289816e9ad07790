import {
  type OwnerMessage,
  type PoolAmount,
  type PoolAnswer,
  type PoolLease,
  type PoolRecall,
  someOf,
} from './lease-messages.js';

/** Workers are told of a later end of their term in steps of this. */
const termStepMs = 1000;

/** A worker as the primary sees it, and what it is about to be told: one message for all that happens at once. */
export class OwnedWorker {
  readonly id: number;
  /** Of its slices: see `sliceOf`. */
  readonly sliceDivisor: number;
  /** It let a recall pass without an answer and was not heard of since: nobody waits for it. */
  isLate = false;
  /** It is still being told of pools in which it has no slice, and would add what it is granted to one. */
  isJoining: boolean;
  leases: PoolLease[] = [];
  answers: PoolAnswer[] = [];
  recalls: PoolRecall[] = [];
  debts: PoolAmount[] = [];
  refilled: string[] = [];
  readonly #send: (message: OwnerMessage) => void;
  /** It was answered: it may have units. */
  #isAnswered = false;
  /** End of its term, as it was told. */
  #until: number | null = null;

  constructor(id: number, sliceDivisor: number, send: (message: OwnerMessage) => void) {
    this.id = id;
    this.sliceDivisor = sliceDivisor;
    this.isJoining = sliceDivisor > 0;
    this.#send = send;
  }

  /** Tells a worker that may have units until when it may use them. */
  tellTerm(until: number | null): void {
    if (this.#isAnswered && this.#isNews(until)) this.#send({ type: 'lease-order', until });
  }

  /** @param until end of the term for the units that it is granted */
  flush(until: number | null): void {
    const { leases, answers, recalls, debts, refilled } = this;
    this.#isAnswered ||= answers.length > 0;
    this.leases = [];
    this.answers = [];
    this.recalls = [];
    this.debts = [];
    this.refilled = [];
    this.#send({
      type: 'lease-order',
      leases: someOf(leases),
      until: answers.length > 0 && this.#isNews(until) ? until : undefined,
      answers: someOf(answers),
      recalls: someOf(recalls),
      debts: someOf(debts),
      refilled: someOf(refilled),
    });
  }

  /** @returns whether it is to be told of that end of its term, which counts as told then */
  #isNews(until: number | null): boolean {
    if (until === this.#until) return false;
    if (until !== null && this.#until !== null && until - this.#until < termStepMs) return false;
    this.#until = until;
    return true;
  }
}
