import type { Key, Model, Price, Target } from '../../config/types.js';
import { estimatedUsage } from '../../conversation/estimate-usage.js';
import type { MadeMedia, Usage } from '../../conversation/usage.js';
import { type CallOutcome, type OtherAttempt, unknownCost } from '../../metrics/call-record.js';
import { targetName } from '../../metrics/recorder.js';
import type { Route } from '../../routes.js';
import type { AnswerTransform } from '../../stream/answer-transform.js';
import type { ResponseHead, UpstreamExchange } from '../../upstream/types.js';
import { costOf } from '../../usage/cost.js';
import type { Running } from '../running.js';

/** What a call has used, and by what it is priced. */
export interface Consumption {
  readonly key: Key | null;
  readonly model: Model | null;
  readonly target: Target | null;
  usage: Usage | null;
  /** An upstream has served it: its price by the call and by the second counts. */
  isServed: boolean;
  /** Those that the answer names; where it names none and counts no tokens either, those that were expected. */
  mediaSeconds: number;
  /** Images that the answer says were made, or has brought; where that is not known, those that were asked for. */
  units: number;
  made: MadeMedia | null;
  costNanos: number;
  /** See `Call.lostInAnswer`. */
  lostInAnswer: readonly string[];
}

interface AnsweredCall extends Consumption {
  readonly route: Route | null;
}

/**
 * Notes what a call has used whose request an upstream was sent, when nothing of its answer passes any more. An error
 * answer has used nothing, one that broke off what has passed of it; a client that left before any answer has used its input.
 * @param head of the upstream's answer, or null when none has come
 * @param isBroken the answer ended before it was whole, and not because its client had left
 */
export function noteUsage(
  call: AnsweredCall,
  transform: AnswerTransform | null,
  head: ResponseHead | null,
  outcome: CallOutcome,
  isBroken: boolean,
): void {
  if (transform === null || (head !== null && head.status >= 400)) return;
  const usage = transform.usageAtEnd(isBroken ? 'upstream' : outcome === 'client_gone' ? 'client' : null);
  // A text may say anything, and who speaks in it is whoever pays for it.
  const isSaid = call.mediaSeconds > 0 && head !== null && isTranscript(call) && !isStructured(head);
  if (!isSaid) call.usage ??= usage;
  call.units = usage?.calls ?? transform.units ?? call.units;
  if (!isSaid && (transform.mediaSeconds > 0 || call.usage !== null))
    call.mediaSeconds = transform.mediaSeconds;
  call.made = joinMade(call.made, transform.made ?? null);
  call.lostInAnswer = transform.lost ?? nothing;
  call.isServed = head !== null && !isBroken;
}

function isTranscript({ route }: Pick<AnsweredCall, 'route'>): boolean {
  return route?.endpoint?.metering.broken === 'text';
}

/** JSON, also as `text/json` and `…+json`, and events of it: servers call subtitles by any other name. */
const structuredType = /^\s*(?:text\/event-stream|[a-z]+\/(?:[^\s;,+]+\+)?json)(?:[\s;,]|$)/i;

/** Whether what is said in an answer is in strings of it, beside which its usage stands. */
function isStructured({ contentType }: ResponseHead): boolean {
  return contentType !== null && structuredType.test(contentType);
}

const nothing: readonly string[] = [];

/** What images or videos were asked for, with what the answer tells of them in its place. */
export function joinMade(asked: MadeMedia | null, told: MadeMedia | null): MadeMedia | null {
  if (asked === null || told === null) return asked ?? told;
  return {
    size: told.size ?? asked.size,
    quality: told.quality ?? asked.quality,
    resolution: told.resolution ?? asked.resolution,
  };
}

/** A call that goes on. */
interface ConsumingCall extends Consumption {
  readonly answeredAt: number;
  readonly forwarding: { readonly transform: AnswerTransform | null } | null;
}

/** What a call that goes on has used by now, as far as that is known: a copy. */
export function consumedSoFar(call: ConsumingCall): Consumption {
  const { key, model, target, isServed, answeredAt, units, made, mediaSeconds, lostInAnswer } = call;
  const transform = call.forwarding?.transform ?? null;
  const usage = call.usage ?? transform?.usageAtEnd('client') ?? null;
  return {
    key,
    model,
    target,
    usage: usage === null ? null : { ...usage, partial: true },
    isServed: isServed || answeredAt > 0,
    // After its usage was asked for.
    mediaSeconds: transform?.mediaSeconds || mediaSeconds,
    units,
    made: joinMade(made, transform?.made ?? null),
    costNanos: -1,
    lostInAnswer,
  };
}

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

/** An attempt that another one takes the place of. */
interface OtherAttemptParts extends Pick<UpstreamExchange, 'sentAt'> {
  readonly target: Target;
  readonly transform: AnswerTransform;
  /** Nobody says any more what it came to. */
  readonly isErrorComing: boolean;
}

/** Notes what an attempt is thought to have used that is cancelled by us, before it is: its input has been read. */
export function noteGivenUp(call: WithAttempts, attempt: OtherAttemptParts): void {
  if (attempt.sentAt === 0 || attempt.isErrorComing) return;
  const usage = attempt.transform.usageAtEnd('client');
  noteAttempt(call, attempt, usage);
  if (usage === null) return;
  const { input, output } = call.givenUp ?? { input: 0, output: 0 };
  call.givenUp = { input: input + usage.input, output: output + usage.output };
}

/**
 * Notes an attempt that has failed, and is followed by another one: an answer that says so may tell what it has used, and
 * one that broke off may have told it before.
 */
export function noteFailed(call: WithAttempts, attempt: OtherAttemptParts): void {
  if (attempt.sentAt === 0) return;
  const { transform } = attempt;
  const whole = transform.usageAtEnd('upstream');
  const told = whole === null ? transform.usage : null;
  noteAttempt(call, attempt, told === null ? whole : { ...told, partial: true });
}

/** Notes the last attempt of a call where its answer says that it has failed, and what it has used: nobody pays for an error. */
export function noteToldUsage(call: WithAttempts, attempt: OtherAttemptParts | null): void {
  if (attempt !== null && attempt.transform.usage !== null) noteFailed(call, attempt);
}

function noteAttempt(
  call: Pick<WithAttempts, 'otherAttempts'>,
  attempt: OtherAttemptParts,
  usage: Usage | null,
): void {
  call.otherAttempts ??= new Map();
  const { target } = attempt;
  const used = usage ?? call.otherAttempts.get(attempt)?.usage ?? null;
  call.otherAttempts.set(attempt, {
    target: targetName(target),
    usage: used,
    paidNanoUsd: paidForTokens(target, used),
  });
}

function paidForTokens({ cost }: Target, usage: Usage | null): number {
  return cost === null || usage === null ? unknownCost : costOf(cost, { usage, seconds: 0, calls: 0 });
}

/**
 * What a call costs that uses nothing but tokens.
 * @param price of the model; null for none
 * @param cost of the target; null where nobody knows
 */
export function costsOfTokens(
  price: Price | null,
  cost: Price | null,
  usage: Usage,
  factor: number,
): { readonly costNanoUsd: number; readonly paidNanoUsd: number } {
  const consumption = { usage, seconds: 0, calls: 1 };
  return {
    costNanoUsd: price === null ? 0 : costOf(price, consumption, factor),
    paidNanoUsd: cost === null ? unknownCost : costOf(cost, consumption),
  };
}

/** What is known of what a call has begun in the background. */
export interface BegunResponse {
  /** Of the call, while its body was at hand. */
  readonly expected: Usage;
  /** Mark of the upstream's key. */
  readonly credential: string | null;
  /** Null until its answer has told. */
  id: string | null;
}

/** Whether the end of what a call has begun is still to come, or was not heard. What has ended tells what it has written. */
export function endsLater({
  begun,
  usage,
}: {
  readonly begun: BegunResponse | null;
  readonly usage: Usage | null;
}): boolean {
  if (begun === null || begun.id === null) return false;
  return usage === null || usage.partial === true || usage.estimated === true || usage.output === 0;
}

/**
 * Notes what a call has used that has begun what nobody can ask for, as its answer named none: no less than that for which
 * it was taken, unless its answer is one that has ended.
 */
export function noteUnnamed(call: { readonly begun: BegunResponse | null; usage: Usage | null }): void {
  const { begun, usage } = call;
  if (begun === null || begun.id !== null || usage === null) return;
  if (usage.output > 0 && usage.partial !== true) return;
  const { input, output } = begun.expected;
  call.usage = estimatedUsage(Math.max(input, usage.input), Math.max(output, usage.output));
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
 * What a call that has ended is charged, in whole nano-dollars by its model's price: for its tokens, and, when an upstream
 * has served it, for its images and seconds and the call itself. Computed once; what the call has used must be known.
 */
export function costOfCall(call: Consumption): number {
  if (call.costNanos < 0) call.costNanos = costSoFar(call);
  return call.costNanos;
}

/** The same of a call that goes on: what it would be charged if it ended now. */
export function costSoFar(call: Consumption): number {
  return computeCost(call, call.model?.price ?? null, factorOf(call));
}

/** On what the calls of a key are charged. */
export function factorOf({ key }: Pick<Consumption, 'key'>): number {
  return key === null ? 1 : key.priceFactor;
}

/** What a call that has ended has cost whoever runs the gateway, as its target's costs are; null where they are not known. */
export function paidForCall(call: Consumption): number | null {
  const cost = call.target === null ? null : call.target.cost;
  return cost === null ? null : computeCost(call, cost, 1);
}

function computeCost(call: Consumption, price: Price | null, factor: number): number {
  const { usage, isServed, mediaSeconds, units, made } = call;
  if (price === null || (usage === null && !isServed)) return 0;
  const consumption = {
    usage,
    seconds: isServed ? mediaSeconds : 0,
    calls: isServed ? units : 0,
    made,
  };
  return costOf(price, consumption, factor);
}
