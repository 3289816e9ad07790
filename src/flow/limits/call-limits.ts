import type { Budget, Key, Model } from '../../config/types.js';
import type { GatewayError } from '../../errors.js';
import type { Admission } from '../../limits/admission.js';
import type { LeaseHolder } from '../../limits/lease-holder.js';
import type { Pool } from '../../limits/pool.js';
import { budgetPool } from '../../limits/pools.js';
import { type RateLines, rateWord } from '../../limits/rate-headers.js';
import type { WaitingCall } from '../../limits/waiting-line.js';
import type { CallOutcome } from '../../metrics/call-record.js';
import type { ErrorFormat } from '../../protocols/error-formats/formats.js';
import type { ReservedBudget } from '../../usage/background-calls.js';
import { budgetPeriod } from '../../usage/budget.js';
import { type Consumption, costOfCall, wholeUsage } from '../record/consumption.js';
import type { Running } from '../running.js';

/** What a call holds of limits whose units are taken together: its admission, or its place in a line before that. */
type Taken = Admission | WaitingCall | null;

/** The budget of an owner in one period. */
export interface PeriodBudget {
  readonly pool: Pool;
  /** Start of the next period, which has a budget of its own, in Unix milliseconds. */
  readonly endsAt: number;
}

interface OwnedBudget extends PeriodBudget {
  readonly owner: string;
  /** Start of the period, in Unix milliseconds: the host's clock may have been ahead when it was made. */
  readonly startsAt: number;
}

const current = new WeakMap<Budget, OwnedBudget>();

const none: readonly PeriodBudget[] = [];

/** The result of a call. */
interface EndedCall extends Consumption {
  readonly outcome: CallOutcome;
  readonly error: GatewayError | null;
  /** When the head of the upstream's answer arrived; 0 if none has. */
  readonly answeredAt: number;
}

/** What a call holds of its limits, and what its client is told about them. */
export class CallLimits {
  /** Taken before its body is read: requests and concurrent calls, if any limit applies to them. */
  beforeModel: Taken = null;
  /** Taken when its model is known. */
  forModel: Taken = null;
  /**
   * The call has ended while it waited for `beforeModel`. It still counts as a request, and releases its slots as soon as it
   * gets them.
   */
  isOver = false;
  /** The budgets that pay for the call; empty for a model that costs nothing. */
  budgets: readonly PeriodBudget[] = none;
  /** All of its limits have admitted the call. */
  isAdmitted = false;
  /** Header lines of the limits that are known by now. */
  rateLines: RateLines;
  readonly #limits: LeaseHolder;

  constructor(limits: LeaseHolder, rateLines: RateLines) {
    this.#limits = limits;
    this.rateLines = rateLines;
  }

  /**
   * Returns the header lines with what is left, each with CRLF before it. A refused client is told what is left at present.
   */
  lines({ errorFormat, running }: { readonly errorFormat: ErrorFormat; readonly running: Running }): string {
    const { rateHeaders } = errorFormat;
    if (rateHeaders === null) return '';
    const { rateLines } = this;
    const recent = this.isAdmitted ? rateLines.lately(rateHeaders, this.#limits.ticks) : null;
    if (recent !== null) return recent;
    return rateLines.text(rateHeaders, rateWord(running.snapshot.vendors), this.#limits);
  }

  /** Called when the client has disconnected. Releases the call's slots; `end` reports its usage. */
  freeSlots(): void {
    this.#endRequests();
    this.admission?.freeSlots();
  }

  /** Releases what the call holds of budgets, if it gets nothing but its client is told so later. */
  freeBudgets(): void {
    this.admission?.settle('budget', 0);
  }

  /** What the call holds of the limits of its tokens and its model, and of budgets; null before it is admitted. */
  get admission(): Admission | null {
    return this.forModel?.outcome === 'admitted' ? this.forModel : null;
  }

  /** Returns what the call holds of budgets. */
  reserved(): readonly ReservedBudget[] {
    const demands = this.admission?.demands ?? [];
    return demands
      .filter(({ pool }) => pool.kind === 'budget')
      .map(({ pool, amount }) => ({ pool: pool.name, limit: pool.limit, amount }));
  }

  /** Called instead of `end` if the usage of the call is not known yet: the estimate remains. */
  endLater(): void {
    this.#endRequests();
    end(this.forModel, null);
  }

  /** Reports the usage and releases the call's slots. A call that failed because of the gateway does not count. */
  end(call: EndedCall): void {
    const { beforeModel, forModel, budgets } = this;
    if (isOurFailure(call)) {
      undo(beforeModel);
      undo(forModel);
      return;
    }
    if (budgets.length > 0) this.admission?.settle('budget', costOfCall(call));
    // A client that disconnects before the decision has received nothing, and was told nothing.
    if (call.outcome === 'client_gone') end(beforeModel, null);
    else this.#endRequests();
    end(forModel, usedTokens(call));
  }

  /** Requests and concurrent calls count however early the call has ended. */
  #endRequests(): void {
    if (this.beforeModel?.outcome === 'pending') this.isOver = true;
    else end(this.beforeModel, null);
  }
}

/** Reports the usage and releases the slots. @param used tokens, or null if unknown */
function end(taken: Taken, used: number | null): void {
  if (taken?.outcome !== 'admitted') {
    taken?.cancel();
    return;
  }
  if (used !== null) taken.settle('tokens', used);
  taken.release();
}

/** Called instead of `end` if the call does not count. */
function undo(taken: Taken): void {
  if (taken?.outcome === 'admitted') taken.undo();
  else taken?.cancel();
}

/**
 * Returns true for a call without any result: one that was refused for lack of memory or of a decision, or whose body
 * arrived too slowly. A call whose answer did not fit into memory counts, since an upstream has done work for it. Else
 * clients could repeat it for free.
 */
function isOurFailure({ outcome, error, answeredAt }: EndedCall): boolean {
  if (outcome !== 'refused' || error === null || answeredAt > 0) return false;
  return error.status === 408 || error.status === 503;
}

/** Returns null if the usage is unknown. The estimate remains then. */
function usedTokens(call: EndedCall): number | null {
  const usage = wholeUsage(call);
  const { outcome } = call;
  if (usage !== null) return usage.input + usage.output;
  return outcome === 'refused' || outcome === 'upstream_error' ? 0 : null;
}

/**
 * Returns all budgets that pay for a call, each of them in full: those of its key, of the key's groups and of its model.
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
 * Returns the budget of an owner for the period of a time. It is made once for each period.
 * @param owner `key:team-a`, `group:default` or `model:gpt-x`
 * @param at Unix milliseconds
 */
export function budgetOf(owner: string, budget: Budget, at: number): PeriodBudget {
  const known = current.get(budget);
  if (known?.owner === owner && at >= known.startsAt && at < known.endsAt) return known;
  const { id, startsAt, endsAt } = budgetPeriod(budget.per, at);
  const made = { owner, pool: budgetPool(owner, budget, id), startsAt, endsAt };
  current.set(budget, made);
  return made;
}
