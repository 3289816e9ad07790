import {
  type OwnerMessage,
  omitEmpty,
  type PoolAmount,
  type PoolAnswer,
  type PoolLease,
  type PoolRecall,
} from './lease-messages.js';

/** Smallest extension of a term that workers are told of. */
const termStepMs = 1000;

/** A worker at the primary, and the pending message to it: one for everything that happens in a turn. */
export class OwnedWorker {
  readonly id: number;
  /** Divisor for its slices: see `sliceOf`. */
  readonly sliceDivisor: number;
  /** Whether it missed a recall and has sent nothing since. Requests do not wait for it. */
  isLate = false;
  /** Whether it is still being told of the pools in which it has no slice. It would add what is granted to a slice. */
  isJoining: boolean;
  leases: PoolLease[] = [];
  answers: PoolAnswer[] = [];
  recalls: PoolRecall[] = [];
  debts: PoolAmount[] = [];
  refilled: string[] = [];
  readonly #send: (message: OwnerMessage) => void;
  /** Whether it was sent an answer, and so may have units. */
  #isAnswered = false;
  /** End of its term that it was last told. */
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

  /** @param until end of the term of what it is granted */
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
      leases: omitEmpty(leases),
      until: answers.length > 0 && this.#isNews(until) ? until : undefined,
      answers: omitEmpty(answers),
      recalls: omitEmpty(recalls),
      debts: omitEmpty(debts),
      refilled: omitEmpty(refilled),
    });
  }

  /** @returns whether the worker has to be told of that end of its term. If so, records that it was told */
  #isNews(until: number | null): boolean {
    if (until === this.#until) return false;
    if (until !== null && this.#until !== null && until - this.#until < termStepMs) return false;
    this.#until = until;
    return true;
  }
}
