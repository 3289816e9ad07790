import type { OwnerMessage, PoolAmount, PoolAnswer, PoolRecall } from './messages.js';

/** Workers are told of a later end of their term in steps of this. */
const termStepMs = 1000;

/** A worker as the primary sees it, and what it is about to be told: one message of each type for all at once. */
export class OwnedWorker {
  readonly id: number;
  /** It let a recall pass without an answer and was not heard of since: nobody waits for it. */
  isLate = false;
  answers: PoolAnswer[] = [];
  recalls: PoolRecall[] = [];
  debts: PoolAmount[] = [];
  news: string[] = [];
  readonly #send: (message: OwnerMessage) => void;
  /** It was answered: it may have units. */
  #isAnswered = false;
  /** End of its term, as it was told. */
  #until: number | null = null;

  constructor(id: number, send: (message: OwnerMessage) => void) {
    this.id = id;
    this.#send = send;
  }

  /** Tells a worker that may have units until when it may use them. */
  tellTerm(until: number | null): void {
    if (this.#isAnswered) this.#updateTerm(until);
  }

  /** @param until end of the term for the units that it is granted */
  flush(until: number | null): void {
    const { answers, recalls, debts, news } = this;
    if (answers.length > 0) {
      this.answers = [];
      this.#isAnswered = true;
      this.#updateTerm(until);
      this.#send({ type: 'lease-answer', answers });
    }
    if (recalls.length > 0) {
      this.recalls = [];
      this.#send({ type: 'lease-recall', recalls });
    }
    if (debts.length > 0) {
      this.debts = [];
      this.#send({ type: 'lease-debt', debts });
    }
    if (news.length > 0) {
      this.news = [];
      this.#send({ type: 'lease-news', pools: news });
    }
  }

  #updateTerm(until: number | null): void {
    if (until === this.#until) return;
    if (until !== null && this.#until !== null && until - this.#until < termStepMs) return;
    this.#until = until;
    this.#send({ type: 'lease-term', until });
  }
}
