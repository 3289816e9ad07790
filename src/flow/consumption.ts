import type { Key, Model, Target } from '../config/types.js';
import type { Usage } from '../conversation/usage.js';
import type { CallOutcome, OtherAttempt } from '../metrics/call-record.js';
import { targetName } from '../metrics/recorder.js';
import type { AnswerTransform } from '../stream/answer-transform.js';
import type { ResponseHead } from '../upstream/client.js';
import { costOf } from '../usage/cost.js';
import type { Running } from './running.js';

/** What a call has used, and by what it is priced. */
export interface Consumption {
  readonly model: Model | null;
  usage: Usage | null;
  /** An upstream has served it: its price by the call and by the second counts. */
  isServed: boolean;
  mediaSeconds: number;
  readonly units: number;
  costNanos: number;
  /** See `Call.lostInAnswer`. */
  lostInAnswer: readonly string[];
}

/**
 * Notes what a call has used whose request an upstream was sent, when nothing of its answer passes any more. An error
 * answer has used nothing; a client that left before any answer has used its input.
 * @param head of the upstream's answer, or null when none has come
 * @param isBroken the answer ended before it was whole, and not because its client had left
 */
export function noteUsage(
  call: Consumption,
  transform: AnswerTransform | null,
  head: ResponseHead | null,
  outcome: CallOutcome,
  isBroken: boolean,
): void {
  if (transform === null || (head !== null && head.status >= 400)) return;
  call.usage ??= transform.usageAtEnd(isBroken ? 'upstream' : outcome === 'client_gone' ? 'client' : null);
  call.mediaSeconds = transform.mediaSeconds;
  call.lostInAnswer = transform.lost ?? nothing;
  call.isServed = head !== null && !isBroken;
}

const nothing: readonly string[] = [];

/** Tokens of attempts that were given up, as they are thought to be: nobody reports them, and no client pays for them. */
export interface GivenUpTokens {
  readonly input: number;
  readonly output: number;
}

/** Attempts of a call before, or beside, the one that it ends with. */
interface WithAttempts {
  givenUp: GivenUpTokens | null;
  otherAttempts: Map<object, OtherAttempt> | null;
}

/** Notes what an attempt is thought to have used that was sent and is cancelled for another one, before it is. */
export function noteGivenUp(
  call: WithAttempts,
  attempt: { readonly target: Target },
  transform: AnswerTransform | null,
): void {
  const usage = transform?.usageAtEnd('client') ?? null;
  noteAttempt(call, attempt, usage);
  if (usage === null) return;
  const { input, output } = call.givenUp ?? { input: 0, output: 0 };
  call.givenUp = { input: input + usage.input, output: output + usage.output };
}

/** Notes an attempt that was sent, and is followed by another one. @param usage null for one that has failed */
export function noteAttempt(
  call: Pick<WithAttempts, 'otherAttempts'>,
  attempt: { readonly target: Target },
  usage: Usage | null,
): void {
  call.otherAttempts ??= new Map();
  const known = call.otherAttempts.get(attempt)?.usage ?? null;
  call.otherAttempts.set(attempt, { target: targetName(attempt.target), usage: usage ?? known });
}

/** What tells whether a call has a line in the ledger. */
interface MeteredCall {
  readonly key: Key | null;
  readonly model: Model | null;
  readonly isOfTask: boolean;
  readonly running: Running;
}

/**
 * Whether a call has a line in the ledger: one of a known key that asked a model for something. What nobody can be
 * charged for would flood it, and so would clients that ask how their tasks stand.
 */
export function isMetered({ key, model, isOfTask, running }: MeteredCall): boolean {
  return running.snapshot.usage.ledger && key !== null && model !== null && !isOfTask;
}

/**
 * The cost of a call that has ended, in whole nano-dollars by its model's price: of its tokens, and, when an upstream
 * has served it, of its images and seconds and of the call itself. Computed once; what the call has used must be known.
 */
export function costOfCall(call: Consumption): number {
  if (call.costNanos < 0) call.costNanos = computeCost(call);
  return call.costNanos;
}

function computeCost({ model, usage, isServed, mediaSeconds, units }: Consumption): number {
  if (model === null || model.price === null || (usage === null && !isServed)) return 0;
  return costOf(model.price, {
    usage,
    seconds: isServed ? mediaSeconds : 0,
    calls: isServed ? units : 0,
  });
}
