import type { Budget, Key, Model } from '../../config/types.js';
import type { GatewayError } from '../../errors.js';
import type { Admission } from '../../limits/admission.js';
import type { LeaseHolder } from '../../limits/lease-holder.js';
import type { Pool } from '../../limits/pool.js';
import { budgetPool } from '../../limits/pools.js';
import { type RateLines, rateWord } from '../../limits/rate-headers.js';
import type { WaitingCall } from '../../limits/waiting-line.js';
import type { CallOutcome } from '../../metrics/call-record.js';
import type { ErrorFormat } from '../../protocols/error-formats/error-format.js';
import type { ReservedBudget } from '../../usage/background-calls.js';
import { budgetPeriod } from '../../usage/budget.js';
import { type Consumption, costOfCall } from '../record/consumption.js';
import type { Running } from '../running.js';

/** What a call has of limits whose units are taken together: what lets it in, or, before that, its place in a line. */
type Taken = Admission | WaitingCall | null;

/** What may be spent in a period. */
export interface PeriodBudget {
  readonly pool: Pool;
  /** Unix milliseconds: when the next period begins, with a budget of its own. */
  readonly endsAt: number;
}

interface OwnedBudget extends PeriodBudget {
  readonly owner: string;
}

const current = new WeakMap<Budget, OwnedBudget>();

const none: readonly PeriodBudget[] = [];

/** What a call has come to. */
interface EndedCall extends Consumption {
  readonly outcome: CallOutcome;
  readonly error: GatewayError | null;
  /** When its upstream's head came; 0 where none has. */
  readonly answeredAt: number;
}

/** A call that falls under limits: what it holds of them, and what its client is told of them. */
export class LimitedCall {
  /** What it takes before its body is read: requests and calls at once, as far as any are limited. */
  beforeModel: Taken = null;
  /** What it takes once its model is known. */
  forModel: Taken = null;
  /** It has ended while it waited for `beforeModel`: it counts all the same, and gives its slots to others once it gets one. */
  isOver = false;
  /** The budgets that pay for the call; none for a model that costs nothing. */
  budgets: readonly PeriodBudget[] = none;
  /** All of its limits have let it in. */
  isAdmitted = false;
  /** Of the limits that are known by now. */
  rateLines: RateLines;
  readonly #limits: LeaseHolder;

  constructor(limits: LeaseHolder, rateLines: RateLines) {
    this.#limits = limits;
    this.rateLines = rateLines;
  }

  /** Header lines that tell how much is left, each with CRLF before it. Whoever is refused is told what is left now. */
  lines({ errorFormat, running }: { readonly errorFormat: ErrorFormat; readonly running: Running }): string {
    const { rateHeaders } = errorFormat;
    if (rateHeaders === null) return '';
    const { rateLines } = this;
    const told = this.isAdmitted ? rateLines.lately(rateHeaders, this.#limits.ticks) : null;
    if (told !== null) return told;
    return rateLines.text(rateHeaders, rateWord(running.snapshot.vendors), this.#limits);
  }

  /** Its client has left: its slots are for others, and what it has used is told by `end`. */
  freeSlots(): void {
    this.#endRequests();
    this.admission?.freeSlots();
  }

  /** It gets nothing, and is told so later: what it holds of budgets is for others. */
  freeBudgets(): void {
    this.admission?.settle('budget', 0);
  }

  /** What it holds of the limits of its tokens and its model, and of budgets; null before it is let in. */
  get admission(): Admission | null {
    return this.forModel?.outcome === 'admitted' ? this.forModel : null;
  }

  /** What it holds of budgets. */
  reserved(): readonly ReservedBudget[] {
    const demands = this.admission?.demands ?? [];
    return demands
      .filter(({ pool }) => pool.kind === 'budget')
      .map(({ pool, amount }) => ({ pool: pool.name, limit: pool.limit, amount }));
  }

  /** In place of `end`, for a call of which nobody knows yet what it will use: the estimate stands. */
  endLater(): void {
    this.#endRequests();
    end(this.forModel, null);
  }

  /** Says what was really used and gives the call's slots to others. What the gateway itself has failed does not count. */
  end(call: EndedCall): void {
    const { beforeModel, forModel, budgets } = this;
    if (isOurFailure(call)) {
      undo(beforeModel);
      undo(forModel);
      return;
    }
    if (budgets.length > 0) this.admission?.settle('budget', costOfCall(call));
    // Who leaves before the decision has had nothing, and was told nothing.
    if (call.outcome === 'client_gone') end(beforeModel, null);
    else this.#endRequests();
    end(forModel, usedTokens(call));
  }

  /** Requests and calls at once count however early the call has ended. */
  #endRequests(): void {
    if (this.beforeModel?.outcome === 'pending') this.isOver = true;
    else end(this.beforeModel, null);
  }
}

/** Says what was really used and gives the call's slots to others. @param used tokens, or null where nobody knows */
function end(taken: Taken, used: number | null): void {
  if (taken?.outcome !== 'admitted') {
    taken?.cancel();
    return;
  }
  if (used !== null) taken.settle('tokens', used);
  taken.release();
}

/** In place of `end`: the call does not count. */
function undo(taken: Taken): void {
  if (taken?.outcome === 'admitted') taken.undo();
  else taken?.cancel();
}

/**
 * A call that found no room, or nobody to ask, or whose body came too slowly, has had nothing. One whose answer found no
 * room has had an upstream's work: if that did not count, clients could have it again and again for nothing.
 */
function isOurFailure({ outcome, error, answeredAt }: EndedCall): boolean {
  if (outcome !== 'refused' || error === null || answeredAt > 0) return false;
  return error.status === 408 || error.status === 503;
}

/** Null where nobody knows: then what was expected stands. */
function usedTokens({ usage, outcome }: EndedCall): number | null {
  if (usage !== null) return usage.input + usage.output;
  return outcome === 'refused' || outcome === 'upstream_error' ? 0 : null;
}

/**
 * All budgets that pay for a call, each of them in full: its key's, those of the key's groups, its model's.
 * @param at Unix milliseconds
 */
export function budgetsOf(key: Key, model: Model, at: number): readonly PeriodBudget[] {
  const budgets: PeriodBudget[] = [];
  if (key.budget !== null) budgets.push(budgetOf(`key:${key.id}`, key.budget, at));
  for (const { group, budget } of key.groupBudgets) budgets.push(budgetOf(`group:${group}`, budget, at));
  if (model.budget !== null) budgets.push(budgetOf(`model:${model.name}`, model.budget, at));
  return budgets;
}

/**
 * The budget of an owner for the period of a time: made once for each.
 * @param owner `key:team-a`, `group:default` or `model:gpt-x`
 * @param at Unix milliseconds
 */
export function budgetOf(owner: string, budget: Budget, at: number): PeriodBudget {
  const known = current.get(budget);
  if (known !== undefined && at < known.endsAt && known.owner === owner) return known;
  const { id, endsAt } = budgetPeriod(budget.per, at);
  const made = { owner, pool: budgetPool(owner, budget, id), endsAt };
  current.set(budget, made);
  return made;
}
