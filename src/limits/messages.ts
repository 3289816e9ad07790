/**
 * What the owner of the pools, in the primary process, and the holders, in its workers, tell each other. Plain JSON.
 * Times are milliseconds of the clock that all processes of the host share.
 */

/** What a worker tells the primary. */
export type HolderMessage = AskMessage | ReturnMessage | OverdraftMessage | SpentMessage | RecalledMessage;

/** What the primary tells a worker. */
export type OwnerMessage = AnswerMessage | RecallMessage | DebtMessage | NewsMessage | TermMessage;

export interface AskMessage {
  readonly type: 'lease-ask';
  readonly asks: readonly PoolAsk[];
}

/** A worker lacks units. It has one ask of a pool under way; a later number takes the place of an earlier one. */
export interface PoolAsk {
  readonly pool: string;
  readonly number: number;
  /** Units without which some of its calls cannot go on. */
  readonly need: number;
  /** Fewer than this help none of them. */
  readonly least: number;
  /** Units that it would soon use: `need` or more. */
  readonly want: number;
}

/** Units come back unused, or cooled. */
export interface ReturnMessage {
  readonly type: 'lease-return';
  readonly returns: readonly PoolAmount[];
}

/** More was used than was leased: the difference is leased now, whether the primary has it or not. */
export interface OverdraftMessage {
  readonly type: 'lease-overdraft';
  readonly overdrafts: readonly PoolAmount[];
}

/** Leased units are used up for good. */
export interface SpentMessage {
  readonly type: 'lease-spent';
  readonly spent: readonly PoolAmount[];
}

export interface PoolAmount {
  readonly pool: string;
  readonly amount: number;
}

/** Answers a `RecallMessage`, at once. */
export interface RecalledMessage {
  readonly type: 'lease-recalled';
  readonly recalled: readonly PoolRecalled[];
}

export interface PoolRecalled {
  readonly pool: string;
  /** Number of the recall. */
  readonly recall: number;
  /** What was idle, and comes back. */
  readonly amount: number;
  /** When more will be idle here, as far as that is known. */
  readonly nextAt: number | null;
  /** In place of the ask that is under way, which counted on the units that come back. */
  readonly ask: PoolAsk | null;
}

export interface AnswerMessage {
  readonly type: 'lease-answer';
  readonly answers: readonly PoolAnswer[];
}

export interface PoolAnswer {
  readonly pool: string;
  /** Number of the ask that is answered. */
  readonly number: number;
  readonly granted: number;
  /** Less was granted than was needed: there is no more. */
  readonly short: boolean;
  /** When there will be more, as far as that is known. */
  readonly retryAt: number | null;
  /** Units that no worker has. */
  readonly free: number;
  /** Nobody knows whether there is more: the store that says so cannot be reached. */
  readonly isCutOff: boolean;
}

/** Other workers lack units: what is idle is to be given back. */
export interface RecallMessage {
  readonly type: 'lease-recall';
  readonly recalls: readonly PoolRecall[];
}

export interface PoolRecall {
  readonly pool: string;
  readonly number: number;
}

/** There is less than was leased: so many units are to be given back before any of the pool is used. */
export interface DebtMessage {
  readonly type: 'lease-debt';
  readonly debts: readonly PoolAmount[];
}

/** There are units again in pools of which the worker was denied some. */
export interface NewsMessage {
  readonly type: 'lease-news';
  readonly pools: readonly string[];
}

/** What was leased may be used until then, and from then on only by the primary's word; null for no bound. */
export interface TermMessage {
  readonly type: 'lease-term';
  readonly until: number | null;
}

/** Tells these messages from others on the same channel, by their `type` alone. */
export function isHolderMessage(message: { readonly type: string }): message is HolderMessage {
  switch (message.type) {
    case 'lease-ask':
    case 'lease-return':
    case 'lease-overdraft':
    case 'lease-spent':
    case 'lease-recalled':
      return true;
    default:
      return false;
  }
}

/** Tells these messages from others on the same channel, by their `type` alone. */
export function isOwnerMessage(message: { readonly type: string }): message is OwnerMessage {
  switch (message.type) {
    case 'lease-answer':
    case 'lease-recall':
    case 'lease-debt':
    case 'lease-news':
    case 'lease-term':
      return true;
    default:
      return false;
  }
}
