import type { Key, Model, Price, Target } from '../../config/types.js';
import { estimatedUsage, tokensOf, withSound } from '../../conversation/estimate-usage.js';
import { addMarkedUsage, type MadeMedia, plausibleSeconds, type Usage } from '../../conversation/usage.js';
import type { Exchange } from '../../http/exchange.js';
import { type CallOutcome, type OtherAttempt, unknownCost } from '../../metrics/call-record.js';
import { targetName } from '../../metrics/recorder.js';
import type { Route } from '../../routes.js';
import type { AnswerTransform } from '../../stream/answer-transform.js';
import type { ResponseHead, UpstreamExchange } from '../../upstream/types.js';
import { costOf, hasTokenRate, isOfTokensOnly } from '../../usage/cost.js';
import { leastRate } from '../../wire/recording.js';
import type { Running } from '../running.js';

/** What a call has used, and what its price depends on. */
export interface Consumption {
  readonly key: Key | null;
  readonly model: Model | null;
  readonly target: Target | null;
  usage: Usage | null;
  /**
   * What other models have used within the call, at their own prices: those that transcribe the input of a session. Null
   * for none.
   */
  otherModels: ReadonlyMap<Model, OtherModel> | null;
  /** An upstream has served the call: prices per call and per second apply. */
  isServed: boolean;
  /**
   * The seconds that the answer reports, or else the expected ones, unless it reports tokens that have a price for the client.
   * Of a sound that broke off, at most what passed of it can last.
   */
  mediaSeconds: number;
  /**
   * The expected seconds of an answer that reports tokens and no seconds: prices that have none for tokens charge these. 0 for
   * any other answer.
   */
  secondsBesideTokens: number;
  /** Of the text that is to be spoken. */
  characters: number;
  /**
   * Images that the answer reports or contains, or the requested number if that is unknown; none that were not complete when
   * their upstream broke off.
   */
  units: number;
  made: MadeMedia | null;
  costNanos: number;
  /** See `Call.lostInAnswer`. */
  lostInAnswer: readonly string[];
}

/** What a model has used within a call for another. */
interface OtherModel {
  readonly target: Target;
  readonly usage: Usage | null;
  /** Of audio, for what reports no tokens. */
  readonly seconds: number;
  readonly units: number;
}

/** A call whose upstream has reported its usage. */
interface ReportedCall {
  readonly target: Target | null;
  readonly exchange: Pick<Exchange, 'bytesIn' | 'bytesOut'>;
  implausible: ImplausibleUsage | null;
}

interface AnsweredCall extends Consumption, ReportedCall {
  readonly route: Route | null;
}

/** What an upstream has reported and no call can have had. */
export interface ImplausibleUsage {
  readonly target: string;
  readonly usage: Usage | null;
  /** Of audio. */
  readonly seconds: number;
}

/**
 * Records what an upstream has reported for a call and no call can have had.
 * @param usage that is not plausible; null for none
 * @param told the reported seconds of audio
 * @returns the seconds that count
 */
export function noteImplausible(call: ReportedCall, usage: Usage | null, told: number): number {
  const seconds = plausibleSeconds(told, call.exchange.bytesIn);
  if ((usage !== null || seconds !== told) && call.target !== null)
    call.implausible = { target: targetName(call.target), usage, seconds: told - seconds };
  return seconds;
}

/**
 * Records the usage of a call whose request an upstream has got, when nothing more of its answer is passed on. An error
 * answer has used nothing. An answer that broke off, or whose client has disconnected, has used what was passed on of it. A
 * call whose client disconnected before any answer has used what is charged of its request: its input, the call itself, and the
 * images that it asks for. An upstream begins with these once it has got the whole request, and bills them.
 * @param head of the upstream's answer, or null if none has arrived
 * @param isBroken the answer ended before it was complete, and not because its client had disconnected
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
  const isSpoken = head !== null && isSpokenText(call, transform, head);
  if (!isSpoken) call.usage ??= usage;
  const { implausible, mediaSeconds } = transform;
  const seconds = noteImplausible(call, implausible, mediaSeconds);
  const isLeft = head === null && outcome === 'client_gone' && !isBroken;
  const isCut = isBroken && head !== null;
  call.units = usage?.calls ?? transform.units ?? (isCut ? 0 : call.units);
  const isReported = transform.usage !== null && !isSpoken;
  if (isReported && mediaSeconds === 0) call.secondsBesideTokens = call.mediaSeconds;
  if (!isSpoken && (seconds > 0 || (mediaSeconds === 0 && isReported && countsTokens(call))))
    call.mediaSeconds = seconds;
  if (isBroken || outcome === 'client_gone') call.mediaSeconds = secondsPassed(call, transform);
  call.made = mergeMedia(call.made, transform.made ?? null);
  call.lostInAnswer = transform.lost ?? nothing;
  call.isServed = isLeft || (head !== null && (!isBroken || hasServed(call, transform)));
  if (!isReported && (usage !== null || call.isServed)) {
    const written = transform.usage === null ? usage : null;
    const estimate = written ?? estimatedUsage(0, tokensOf(call.exchange.bytesOut));
    call.usage = withSoundEstimate(call, estimate);
  }
}

/** Whether an answer that broke off has brought what is charged: images, or a part of what is charged by the second. */
function hasServed(
  { units, mediaSeconds, characters }: AnsweredCall,
  { passed = 0 }: AnswerTransform,
): boolean {
  return passed > 0 && (units > 0 || mediaSeconds > 0 || characters > 0);
}

/** Returns the seconds of a call whose answer is incomplete: of a sound at most what its bytes last in the most compact encoding. */
function secondsPassed(
  { route, mediaSeconds }: Pick<AnsweredCall, 'route' | 'mediaSeconds'>,
  transform: AnswerTransform | null,
): number {
  if (route?.endpoint?.metering.unreported !== 'sound') return mediaSeconds;
  return Math.min(mediaSeconds, (transform?.passed ?? 0) / leastRate);
}

/** Whether tokens have a price for the client, or for the operator if the client has none. */
function countsTokens({ model, target }: Pick<Consumption, 'model' | 'target'>): boolean {
  const price = model?.price ?? target?.cost ?? null;
  return price === null || hasTokenRate(price.rates);
}

/** Estimates the tokens of a sound or transcript by its seconds, if nothing else of it has a price. */
function withSoundEstimate(
  { route, model, mediaSeconds, usage }: AnsweredCall,
  estimate: Usage,
): Usage | null {
  const kind = route?.endpoint?.metering.unreported ?? null;
  const isOfSound = kind !== null && kind !== 'image' && mediaSeconds > 0;
  return isOfSound && isOfTokensOnly(model?.price ?? null) ? withSound(estimate, kind, mediaSeconds) : usage;
}

/**
 * Whether what an answer claims may be the words of whoever speaks in the recording: a plain text may contain any usage. One JSON
 * object is more likely a transcript with another type. It is believed where tokens are the whole price, since nothing else
 * counts them; seconds are known from the recording.
 */
function isSpokenText(call: AnsweredCall, { isObject }: AnswerTransform, head: ResponseHead): boolean {
  if (call.mediaSeconds === 0 || !isTranscript(call) || isStructured(head)) return false;
  return isObject !== true || !isOfTokensOnly(call.model?.price ?? null);
}

function isTranscript({ route }: Pick<AnsweredCall, 'route'>): boolean {
  return route?.endpoint?.metering.unreported === 'transcript';
}

/** JSON, also as `text/json` and `…+json`, and events of JSON. Servers use any other type for subtitles. */
const structuredType = /^\s*(?:text\/event-stream|[a-z]+\/(?:[^\s;,+]+\+)?json)(?:[\s;,]|$)/i;

/** Whether an answer has its content in strings, with the usage beside them. */
function isStructured({ contentType }: ResponseHead): boolean {
  return contentType !== null && structuredType.test(contentType);
}

const nothing: readonly string[] = [];

/** Merges the requested kind of images or videos with what the answer reports of it. */
export function mergeMedia(requested: MadeMedia | null, reported: MadeMedia | null): MadeMedia | null {
  if (requested === null || reported === null) return requested ?? reported;
  return {
    size: reported.size ?? requested.size,
    quality: reported.quality ?? requested.quality,
    resolution: reported.resolution ?? requested.resolution,
  };
}

/** A call in flight. */
interface ConsumingCall extends Consumption {
  readonly answeredAt: number;
  readonly exchange: Pick<Exchange, 'bytesIn'>;
  readonly route: Route | null;
  readonly forwarding: { readonly transform: AnswerTransform | null } | null;
}

/** Returns a copy of what a call in flight has used so far, if that is known. */
export function consumedSoFar(call: ConsumingCall): Consumption {
  const { key, model, target, otherModels, isServed, answeredAt, units, route } = call;
  const { made, secondsBesideTokens, characters, lostInAnswer } = call;
  const transform = call.forwarding?.transform ?? null;
  const usage = call.usage ?? transform?.usageAtEnd('client') ?? null;
  // After `usage` was read.
  const seconds = plausibleSeconds(transform?.mediaSeconds ?? 0, call.exchange.bytesIn);
  const mediaSeconds = seconds > 0 ? seconds : call.mediaSeconds;
  return {
    key,
    model,
    target,
    usage: usage === null ? null : { ...usage, partial: true },
    otherModels,
    isServed: isServed || answeredAt > 0,
    mediaSeconds: secondsPassed({ route, mediaSeconds }, transform),
    secondsBesideTokens,
    characters,
    units,
    made: mergeMedia(made, transform?.made ?? null),
    costNanos: -1,
    lostInAnswer,
  };
}

/** Estimated tokens of attempts that were given up. No upstream reports them, and no client pays for them. */
export interface GivenUpTokens {
  readonly input: number;
  readonly output: number;
}

/** The attempts of a call before, or beside, the last one. */
interface WithAttempts {
  readonly characters: number;
  readonly units: number;
  readonly made: MadeMedia | null;
  givenUp: GivenUpTokens | null;
  otherAttempts: Map<object, OtherAttempt> | null;
}

/** An attempt that is replaced by another. */
interface OtherAttemptParts extends Pick<UpstreamExchange, 'sentAt' | 'isWritten'> {
  readonly target: Target;
  readonly transform: AnswerTransform;
  /** An error answer was arriving whose content nothing reads any more. */
  readonly isErrorComing: boolean;
}

/**
 * Records the estimated usage of an attempt that the gateway cancels: its input has been read. An upstream that has got the
 * whole request bills the call, too.
 */
export function noteGivenUp(call: WithAttempts, attempt: OtherAttemptParts): void {
  if (attempt.sentAt === 0 || attempt.isErrorComing) return;
  const usage = attempt.transform.usageAtEnd('client');
  const units = usage?.calls ?? (attempt.isWritten ? call.units : 0);
  noteAttempt(call, attempt, usage, { characters: call.characters, units, made: call.made });
  if (usage === null) return;
  const { input, output } = call.givenUp ?? { input: 0, output: 0 };
  call.givenUp = { input: input + usage.input, output: output + usage.output };
}

/**
 * Records a failed attempt that is followed by another. An error answer may report its usage, and an answer that broke off
 * may have reported it before.
 */
export function noteFailed(call: WithAttempts, attempt: OtherAttemptParts): void {
  if (attempt.sentAt === 0) return;
  const { transform } = attempt;
  const whole = transform.usageAtEnd('upstream');
  const reported = whole === null ? transform.usage : null;
  const usage = reported === null ? whole : { ...reported, partial: true as const };
  noteAttempt(call, attempt, usage, { characters: 0, units: usage?.calls ?? 0, made: call.made });
}

/** Records the usage that the answer of a failed last attempt reports. No client pays for an error. */
export function noteReportedUsage(call: WithAttempts, attempt: OtherAttemptParts | null): void {
  if (attempt !== null && attempt.transform.usage !== null) noteFailed(call, attempt);
}

/** Records what an upstream has made, and bills, although it does not reach the client, which pays for no error. */
export function noteUndelivered(
  call: WithAttempts,
  attempt: Pick<OtherAttemptParts, 'target'>,
  usage: Usage | null,
  units: number,
): void {
  noteAttempt(call, attempt, usage, { characters: 0, units, made: call.made });
}

/** What an attempt is billed for besides its tokens. */
type BilledBeside = Pick<Consumption, 'characters' | 'units' | 'made'>;

function noteAttempt(
  call: Pick<WithAttempts, 'otherAttempts'>,
  attempt: Pick<OtherAttemptParts, 'target'>,
  usage: Usage | null,
  billed: BilledBeside,
): void {
  call.otherAttempts ??= new Map();
  const { target } = attempt;
  const used = usage ?? call.otherAttempts.get(attempt)?.usage ?? null;
  call.otherAttempts.set(attempt, {
    target: targetName(target),
    usage: used,
    paidNanoUsd: paidForAttempt(target, used, billed),
  });
}

function paidForAttempt(
  { cost }: Target,
  usage: Usage | null,
  { characters, units, made }: BilledBeside,
): number {
  if (cost === null) return unknownCost;
  const { rates, images } = cost;
  const ofCharacters = characters > 0 && rates.characters > 0;
  const ofUnits = units > 0 && (rates.perCall > 0 || images.length > 0);
  if (usage === null && ((!ofCharacters && !ofUnits) || rates.perSecond > 0)) return unknownCost;
  return costOf(cost, {
    usage,
    seconds: 0,
    characters: pricedCharacters(cost, usage, characters),
    units,
    made,
  });
}

/**
 * Returns what a call costs that uses only tokens.
 * @param price of the model; null for none
 * @param cost of the target; null if unknown
 */
export function costsOfTokens(
  price: Price | null,
  cost: Price | null,
  usage: Usage,
  factor: number,
): { readonly costNanoUsd: number; readonly paidNanoUsd: number } {
  const consumption = { usage, seconds: 0, units: 1 };
  return {
    costNanoUsd: price === null ? 0 : costOf(price, consumption, factor),
    paidNanoUsd: cost === null ? unknownCost : costOf(cost, consumption),
  };
}

/** What is known about work that a call has started in the background. */
export interface BegunResponse {
  /** Estimated while the body of the call was in memory. */
  readonly expected: Usage;
  /** Mark of the upstream's key. */
  readonly credential: string | null;
  /** Null until the answer has named it. */
  id: string | null;
}

/** Whether the end of the background work is still to come, or was not seen. Work that has ended has reported its usage. */
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
 * Records the usage of background work that cannot be queried, since its answer named no id: at least the estimate, unless
 * the answer is one that has ended.
 */
export function noteUnnamed(call: { readonly begun: BegunResponse | null; usage: Usage | null }): void {
  const { begun, usage } = call;
  if (begun === null || begun.id !== null || usage === null) return;
  if (usage.output > 0 && usage.partial !== true) return;
  const { input, output } = begun.expected;
  call.usage = estimatedUsage(Math.max(input, usage.input), Math.max(output, usage.output));
}

/** Decides whether a call has a line in the ledger. */
interface MeteredCall {
  readonly key: Key | null;
  readonly model: Model | null;
  readonly isOfTask: boolean;
  readonly running: Running;
}

/**
 * Returns whether a call has a line in the ledger: it has a known key and a model. Calls that cannot be charged to a key
 * would flood the ledger, and so would clients that poll their tasks.
 */
export function isMetered({ key, model, isOfTask, running }: MeteredCall): boolean {
  return running.snapshot.usage.ledger && key !== null && model !== null && !isOfTask;
}

/**
 * Returns what an ended call is charged, in whole nano-dollars, by its model's price: for its tokens and, if an upstream has
 * served it, for its images, its seconds and the call itself. Computed once; the usage of the call must be known.
 */
export function costOfCall(call: Consumption): number {
  if (call.costNanos < 0) call.costNanos = costSoFar(call);
  return call.costNanos;
}

/** Returns what a call in flight would be charged if it ended now. */
export function costSoFar(call: Consumption): number {
  const factor = factorOf(call);
  let cost = computeCost(call, call.model?.price ?? null, factor);
  for (const [{ price }, used] of call.otherModels ?? [])
    if (price !== null) cost += costOf(price, used, factor);
  return cost;
}

/** Records what another model has used within a call. @param seconds of audio, for what reports no tokens */
export function noteOtherModel(
  call: Consumption,
  model: Model,
  { target, usage, seconds }: Pick<OtherModel, 'target' | 'usage' | 'seconds'>,
): void {
  const before = call.otherModels?.get(model);
  const used: OtherModel = {
    target,
    usage: usage === null ? (before?.usage ?? null) : addMarkedUsage(before?.usage ?? null, usage),
    seconds: (before?.seconds ?? 0) + seconds,
    units: (before?.units ?? 0) + 1,
  };
  call.otherModels = new Map([...(call.otherModels ?? []), [model, used]]);
}

/** Returns the seconds of audio or video of a call, whichever model has used them. */
export function wholeSeconds({ mediaSeconds, otherModels }: Consumption): number {
  let whole = mediaSeconds;
  for (const { seconds } of otherModels?.values() ?? []) whole += seconds;
  return whole;
}

/** Returns all tokens of a call, whichever model has used them. */
export function wholeUsage({ usage, otherModels }: Pick<Consumption, 'usage' | 'otherModels'>): Usage | null {
  if (otherModels === null) return usage;
  let whole = usage;
  for (const used of otherModels.values()) if (used.usage !== null) whole = addMarkedUsage(whole, used.usage);
  return whole;
}

/** Returns the factor on the charges of a key's calls. */
export function factorOf({ key }: Pick<Consumption, 'key'>): number {
  return key === null ? 1 : key.priceFactor;
}

/** Returns what an ended call has cost the operator, by the costs of its target; null if they are unknown. */
export function paidForCall(call: Consumption): number | null {
  const cost = call.target === null ? null : call.target.cost;
  if (cost === null) return null;
  let paid = computeCost(call, cost, 1);
  // Where the costs of the other are unknown, it has those of the call's target.
  for (const { target, ...used } of call.otherModels?.values() ?? [])
    paid += costOf(target.cost ?? cost, used);
  return paid;
}

/** Returns the characters of a call if they have a price for its client or for the operator, and else 0. */
export function countedCharacters({ isServed, characters, model, target }: Consumption): number {
  const rate = (model?.price?.rates.characters ?? 0) + (target?.cost?.rates.characters ?? 0);
  return isServed && rate > 0 ? characters : 0;
}

/** Returns the characters that are charged: none of a call whose tokens have a price. */
function pricedCharacters({ rates }: Price, usage: Usage | null, characters: number): number {
  return usage !== null && hasTokenRate(rates) ? 0 : characters;
}

function computeCost(call: Consumption, price: Price | null, factor: number): number {
  const { usage, isServed, mediaSeconds, secondsBesideTokens, characters, units, made } = call;
  if (price === null || (usage === null && !isServed)) return 0;
  const besideTokens = hasTokenRate(price.rates) ? 0 : secondsBesideTokens;
  const seconds = secondsBesideTokens > 0 ? besideTokens : mediaSeconds;
  const consumption = {
    usage,
    seconds: isServed ? seconds : 0,
    characters: isServed ? pricedCharacters(price, usage, characters) : 0,
    units: isServed ? units : 0,
    made,
  };
  return costOf(price, consumption, factor);
}
