import type { OwnSecrets } from '../config/types.js';
import {
  type BrokenBy,
  inexactUsage,
  mediumTokens,
  ofImages,
  tokensOf,
  withEstimatedInput,
  withMedia,
  withUncounted,
} from '../conversation/estimate-usage.js';
import type { Keep } from '../conversation/kept-turns.js';
import {
  type AnswerCharges,
  chargedUsage,
  endedEarly,
  type Metering,
  noCharges,
  type StreamEnding,
  type StreamFacts,
  type StreamRules,
  type StreamStart,
  type UnitCounter,
} from '../conversation/stream-rules.js';
import { type MadeMedia, type ModelTokens, type Usage, UsageCheck } from '../conversation/usage.js';
import type { GatewayError } from '../errors.js';
import { reportableError } from '../protocols/error-formats/vendor-account.js';
import { CLOSE_BRACE, OPEN_BRACE, SPACE } from '../wire/bytes.js';
import { parseObject } from '../wire/json.js';
import { beforeList, textStart } from '../wire/json-skip.js';
import { eventLength } from '../wire/sse.js';
import { Tail, tailBytes } from '../wire/tail.js';
import type { AnswerTransform, StreamFailure, TransformEnd, WaitingEnd } from './answer-transform.js';
import { LargeEvent } from './large-event.js';
import { type Alternatives, StreamOpening } from './opening.js';
import { OutputEstimate } from './output-estimate.js';
import { transcriptWeight, writtenIn } from './streamed-text.js';
import { uncut, WithheldEvents } from './withheld.js';

/** Answers up to this size are sent in one piece, so that an upstream that breaks off still leads to an error status. */
const wholeBytes = 256 * 1024;
/** The same bound for answers that may have to be changed. */
const amendedBytes = 64 * 1024 * 1024;
/** A larger event is passed on in parts. */
const eventBytes = 1024 * 1024;
/** Bytes of the beginning from which the length of a sound is read. */
const beginBytes = 256;

/** Number of runs of a stream in which its beginning is searched for. */
const mostWatched = 4;
/** Most bytes that may follow the end of a stream: at most a mark does. */
const mostBehind = 4096;
/** Bytes of the end of a whole answer in pieces in which charges stand: behind them, it may repeat tools and metadata. */
const wholeTailBytes = 64 * 1024;
const openBrace = Buffer.from('{');
const nothing = Buffer.alloc(0);

/** Receives an answer as it is passed on, from its beginning. @returns true if it needs no more */
export type AnswerWatch = (piece: Buffer, isStream: boolean) => boolean;

interface Observed {
  readonly rules: StreamRules;
  /** Only the gateway has requested the usage event, which is hidden from the client. */
  readonly hideUsage: boolean;
  /** The upstream decides whether its answer is a stream. */
  readonly streamsUnasked: boolean;
  /** Whether an error answer is in the client's protocol. Default: true. */
  readonly exactErrors?: boolean;
  /** Changes a whole answer; null for answers that are passed on untouched. */
  readonly amend: ((answer: Buffer) => Buffer) | null;
  /** What is stored of the answer; null for nothing. */
  readonly keep: Keep | null;
  readonly watch?: AnswerWatch | null;
  /** Receives the whole answer, or its last bytes, once it is complete. */
  readonly watchEnd?: ((end: Buffer) => void) | null;
  /** Receives each run of events, or the whole answer. */
  readonly watchAll?: ((run: Buffer, isStream: boolean) => void) | null;
  /** Estimated input tokens of the request, for an upstream that reports none. */
  readonly inputEstimate: number;
  readonly tokens: ModelTokens;
  /** Answers without a usage that are estimated as `Metering.unreported`: those that break off, or all. Default: none. */
  readonly estimated?: 'none' | 'broken' | 'all';
  /** Number of images that the request asks for. Default: 1. */
  readonly requested?: number;
  /** For which a stream may be given up that has only opened its answer. Default: none. */
  readonly alternatives?: Alternatives | null;
  /** Secrets of the gateway at the upstream. Answers must not reveal its keys, errors none of them. */
  readonly secrets: OwnSecrets;
}

/** Passes an answer on untouched, and reads its usage and whether it is complete. */
export class ObservedTransform implements AnswerTransform {
  readonly wholeBytes: number;
  readonly divisible: boolean;
  readonly eventBytes: number = eventBytes;
  readonly exactErrors: boolean;
  readonly isCut = false;
  readonly keep: Keep | null;
  waitingEnd: WaitingEnd | null = null;
  failure: StreamFailure | null = null;
  readonly streamsUnasked: boolean;
  readonly #observed: Observed;
  readonly #rules: StreamRules;
  readonly #withheld: WithheldEvents;
  #charges: AnswerCharges | null = null;
  #usage: Usage | null = null;
  readonly #check: UsageCheck;
  #tail: Tail | null = null;
  /** Null before the first events of a stream. */
  #opening: StreamOpening | null = null;
  #usageAtStart: Usage | null = null;
  /** Only events that open the answer have arrived. */
  #isOpening = true;
  /** Number of the last event in the last run that did not fit into the tail, or is not in it. */
  #number: number | null = null;
  #started = false;
  #ended = false;
  /** The last event of the stream has begun. */
  #repeats = false;
  /** The last run was a part of an event whose end has not arrived. */
  #large: LargeEvent | null = null;
  /** How the stream has ended, if its last event did not fit into the tail. */
  #long: StreamEnding | null = null;
  /** The same as of the last run that did not fit into the tail, and the bytes that had passed with it. */
  #soFar: { readonly ending: StreamEnding; readonly passed: number } | null = null;
  /** What a whole answer that passes in pieces reports before its first list: from there on, the model may have written it. */
  #usageAtHead: Usage | null = null;
  /** The end of the stream as read from what has passed. Cached, since it is read several times at the end. */
  #ending: StreamEnding | null = null;
  /** Null for an answer that is passed on whole. */
  #output: OutputEstimate | null = null;
  #watch: AnswerWatch | null;
  #watched = 0;
  /** Bytes that have arrived after the end. */
  #behind = 0;
  /** Estimated tokens of a whole answer that reports none. */
  #wholeTokens = 0;
  /** The first bytes of an answer that is passed on in pieces, if its duration is read from them. */
  #begin: Buffer | null = null;
  mediaSeconds = 0;
  isObject = false;
  made: MadeMedia | null = null;
  units: number | null = null;
  readonly #counter: UnitCounter | null;

  constructor(observed: Observed) {
    this.#observed = observed;
    this.#rules = observed.rules;
    this.#check = new UsageCheck(observed.tokens, observed.inputEstimate);
    this.#counter = observed.rules.countUnits?.() ?? null;
    this.#withheld = new WithheldEvents(observed.rules, observed.secrets);
    this.#watch = observed.watch ?? null;
    this.keep = observed.keep;
    const isGathered = observed.amend !== null || observed.keep !== null;
    this.wholeBytes = isGathered ? amendedBytes : (observed.rules.wholeBytes ?? wholeBytes);
    this.divisible = observed.amend === null;
    this.streamsUnasked = observed.streamsUnasked;
    this.exactErrors = observed.exactErrors ?? true;
  }

  get gatheredBytes(): number {
    return (this.keep?.gathered?.() ?? 0) + this.#heldBytes + (this.#large?.bytes ?? 0);
  }

  /** Bytes of the beginning that are held back. */
  get #heldBytes(): number {
    return this.#opening?.heldBytes ?? 0;
  }

  get passed(): number {
    return this.#output?.passed ?? 0;
  }

  /** What follows the last event would come behind what waits. */
  get endsItself(): boolean {
    return this.waitingEnd !== null;
  }

  get usage(): Usage | null {
    if (this.#usage === null && this.#tail !== null)
      this.#usage = this.#check.checked(
        this.#started ? this.#streamUsage : (this.#rules.usageOf(this.#tail.bytes()) ?? this.#usageAtHead),
      );
    const held = this.#usage === null ? this.#opening?.held : null;
    if (held != null) this.#usage = this.#check.checked(this.#rules.usageAtStart?.(held) ?? null);
    return this.#usage;
  }

  get #streamUsage(): Usage | null {
    return this.#counter?.usage ?? this.#judgeEnd().usage;
  }

  get implausible(): Usage | null {
    return this.#check.implausible;
  }

  judge(run: Buffer): StreamStart {
    this.#usage = null;
    const { rules, secrets, alternatives = null } = this.#observed;
    this.#opening ??= new StreamOpening({ rules, secrets, alternatives, withheld: this.#withheld });
    return this.#opening.judge(run);
  }

  pass(run: Buffer, isPart = false): Buffer {
    if (!this.#started) {
      this.#started = true;
      run = this.#opening?.take(run) ?? run;
      if (this.#rules.usageAtStart !== null) this.#usageAtStart = this.#rules.usageAtStart(run);
    }
    const wasInside = this.#large !== null;
    const cut = wasInside || isPart ? { first: wasInside, last: isPart } : uncut;
    const withheld = this.#withheld.first(run, cut);
    if (withheld !== null) {
      this.failure = { error: withheld.error, isTold: false };
      run = run.subarray(0, withheld.start);
    }
    const isIdle = this.#withheld.isIdle(run);
    run = this.#withheld.withoutSigns(run);
    let whole = run;
    // Signs of life are no part of the answer, and would displace its end.
    if (isIdle) this.#number = this.#rules.lastNumber?.(run) ?? this.#number;
    else whole = this.#observe(run, isPart, wasInside);
    this.#observed.watchAll?.(whole, true);
    const { keep } = this;
    if (keep !== null && this.#keepBack(keep, run, whole)) return nothing;
    return this.#observed.hideUsage ? this.#rules.hideUsage(run) : run;
  }

  /**
   * Reads what a run says of the answer, its end and its price.
   * @returns its whole events. One that has passed in parts is in its short form, with the last of these
   */
  #observe(run: Buffer, isPart: boolean, wasInside: boolean): Buffer {
    this.#tail ??= new Tail();
    const isEnd = this.#isEnd(run);
    const opened = this.#isOpening && !isPart && !wasInside ? this.#openedBy(run) : 0;
    const repeatAt = this.#repeatAt(run, isEnd, wasInside);
    this.#repeats ||= isEnd;
    this.#output ??= new OutputEstimate();
    this.#output.add(repeatAt === run.length ? run : run.subarray(0, repeatAt), opened);
    this.#tail.add(opened === 0 && repeatAt === run.length ? run : run.subarray(opened, repeatAt));
    const beforeRepeat = isEnd && repeatAt < run.length ? Buffer.from(this.#tail.bytes()) : null;
    if (repeatAt < run.length) {
      this.#output.addRepeat(run.subarray(repeatAt), isPart || wasInside);
      this.#tail.add(run.subarray(repeatAt));
    }
    // A stream that is cut to withhold something is cut after an event.
    const isInside = this.failure === null ? isPart : wasInside && run.length === 0;
    const large = isInside ? (this.#large ?? new LargeEvent()) : this.#large;
    const whole = large === null ? run : large.add(run, isInside);
    this.#large = isInside ? large : null;
    this.#counter?.addEvents(run);
    this.#noteEvents(whole, wasInside && !isInside, large === null ? isEnd : this.#isEnd(whole));
    if (run.length > tailBytes) this.#number = this.#rules.lastNumber?.(run) ?? this.#number;
    if (beforeRepeat !== null && this.#long?.usage == null)
      this.#output.noteRepeat(
        beforeRepeat,
        isPart ? null : this.#rules.repeat?.answer(run.subarray(repeatAt)),
      );
    if (this.#watch !== null) this.#show(run, true);
    return whole;
  }

  #isEnd(run: Buffer): boolean {
    return !this.#ended && this.#rules.marksEnd?.(run) === true;
  }

  /** @param events whole ones @param isShort the first of them is the short form of a large one */
  #noteEvents(events: Buffer, isShort: boolean, isEnd: boolean): void {
    this.#noteCharges(events);
    this.#ending = null;
    this.#usage = null;
    if (this.#rules.marksEnd !== null) this.#noteEnd(events, isShort, isEnd);
  }

  /** Returns how many bytes of a run are events that only open the answer: they may repeat the request, and show no output. */
  #openedBy(run: Buffer): number {
    const opened = this.#rules.openedBy?.(run) ?? 0;
    this.#isOpening = opened === run.length;
    if (opened > 0) this.#number = this.#rules.lastNumber?.(run.subarray(0, opened)) ?? this.#number;
    return opened;
  }

  /** Returns where in a run a last event begins or goes on that repeats the answer and does not fit into the tail. */
  #repeatAt(run: Buffer, isEnd: boolean, wasInside: boolean): number {
    const { repeat } = this.#rules;
    if (repeat === undefined || run.length <= tailBytes) return run.length;
    if (isEnd) return repeat.start(run);
    return this.#repeats && wasInside ? 0 : run.length;
  }

  #noteCharges(run: Buffer): void {
    const { noteCharges } = this.#rules;
    if (noteCharges === undefined) return;
    this.#charges ??= noCharges();
    noteCharges(run, this.#charges);
  }

  /**
   * Some upstreams omit the blank line after their last event. If the stream ends regularly, the event has ended.
   * @returns the short form of a large event that has ended with its stream
   */
  #endEvent(): Buffer {
    if (this.#large?.isClosed !== true) return nothing;
    const whole = this.#large.whole();
    this.#large = null;
    this.#noteEvents(whole, true, this.#isEnd(whole));
    return whole;
  }

  /**
   * Reads a last event that does not fit into the tail, whose end alone shows neither its usage nor whether it is an error.
   * Members that the answer repeats are told by their depth. If the usage grows, any event may turn out to be the last one
   * that has it.
   * @param isShort see `#noteEvents`
   */
  #noteEnd(events: Buffer, isShort: boolean, isEnd: boolean): void {
    if (this.#ended) return;
    this.#ended = isEnd;
    if (events.length <= tailBytes && !isShort) return;
    if (isEnd) {
      const ending = this.#rules.judgeEnd(events, this.#facts);
      if (ending.error !== null || ending.usage !== null) this.#long = ending;
    } else if (this.#rules.metering.grows && (isShort || lastLength(events) > tailBytes))
      this.#soFar = { ending: this.#rules.judgeEnd(events, this.#facts), passed: this.passed };
  }

  #show(piece: Buffer, isStream: boolean): void {
    this.#watched += 1;
    if (this.#watch?.(piece, isStream) === true || this.#watched === mostWatched) this.#watch = null;
  }

  /**
   * Holds back the run that ends an answer of which something is to be stored, and what follows it.
   * @param whole its whole events, as `#observe` returns them
   */
  #keepBack(keep: Keep, run: Buffer, whole: Buffer): boolean {
    if (this.waitingEnd !== null) {
      this.#behind += run.length;
      if (this.#behind <= mostBehind) this.waitingEnd.end = Buffer.concat([this.waitingEnd.end, run]);
      return true;
    }
    keep.see?.(run);
    // If nothing else reports the end, the records show that it has arrived.
    if ((!this.#ended && this.#rules.marksEnd !== null) || this.failure !== null) return false;
    const records = keep.records(whole, true);
    if (records.length > 0) {
      const insideEvent = whole !== run;
      this.waitingEnd = { keep, records, end: Buffer.from(run), isStream: true, insideEvent };
    }
    return this.waitingEnd !== null;
  }

  get isComplete(): boolean {
    if (!this.#started) return false;
    if (this.#rules.marksEnd === null) return this.#judgeEnd().state === 'complete';
    return this.#ended && this.#judgeEnd().state !== 'failed';
  }

  end(): TransformEnd {
    const whole = this.#endEvent();
    if (whole.length > 0) {
      this.#observed.watchAll?.(whole, true);
      if (this.keep !== null) this.#keepBack(this.keep, nothing, whole);
    }
    const { state } = this.#judgeEnd();
    this.#usage = this.#check.checked(this.#streamUsage);
    return {
      last: null,
      error: state === 'incomplete' ? endedEarly() : null,
    };
  }

  get passedError(): GatewayError | null {
    const error = this.#started ? this.#judgeEnd().error : null;
    return error === null ? null : reportableError(error, this.#observed.secrets);
  }

  get nextNumber(): number {
    const tail = this.#tail?.bytes() ?? null;
    const last = (tail === null ? null : this.#rules.lastNumber?.(tail)) ?? -1;
    return Math.max(last, this.#number ?? -1) + 1;
  }

  lastWords(_error: GatewayError, event: string): string {
    return event;
  }

  note(chunk: Buffer): void {
    if (this.#tail === null) {
      if (this.#watch !== null) this.#show(chunk, false);
      this.#tail = new Tail(this.#rules.noteCharges === undefined ? tailBytes : wholeTailBytes);
      this.#usageAtHead = this.#rules.usageOf(beforeList(chunk));
      if (this.#rules.metering.seconds !== null) this.#begin = Buffer.from(chunk.subarray(0, beginBytes));
    }
    this.#tail.add(chunk);
    this.#counter?.addWhole(chunk);
    this.#usage = null;
    this.#output ??= new OutputEstimate();
    this.#output.add(chunk);
  }

  usageAtEnd(brokenBy: BrokenBy): Usage | null {
    if (brokenBy === null) this.#endEvent();
    // When a client disconnects before the end, it is unknown how many its upstream has made.
    if (this.#cutBy(brokenBy) !== 'client') this.units = this.#counter?.units ?? null;
    const usage = this.#tokensAtEnd(brokenBy);
    const charges = this.#charges;
    if (usage === null || charges === null) return usage;
    return this.#check.checked(chargedUsage(usage, charges)) ?? usage;
  }

  #tokensAtEnd(brokenBy: BrokenBy): Usage | null {
    const { estimates, grows } = this.#rules.metering;
    const reported = this.usage;
    const tail = this.#tail?.bytes() ?? null;
    if (tail !== null) this.#hear(this.#begin ?? tail, tail);
    // Its end has what is charged beside the usage, and in front of it is nothing but output.
    if (tail !== null && brokenBy === null && !this.#started)
      this.#noteCharges(Buffer.concat([openBrace, tail]));
    if (tail !== null) this.made = this.#rules.madeOf?.(tail) ?? null;
    const { watchEnd } = this.#observed;
    if (tail !== null && watchEnd != null && this.#hasWholeEnd(brokenBy)) watchEnd(tail);
    const isBegun = this.#heldBytes > 0 || (grows && this.#started);
    const isWhole = brokenBy === null || !isBegun || (this.#started && this.#judgeEnd().state === 'complete');
    const missing = reported === null ? 0 : this.#unreportedMedia(this.#cutBy(brokenBy));
    if (reported !== null && missing > 0) return withMedia(reported, missing, brokenBy);
    if (reported !== null && isWhole) return brokenBy === null ? this.#allCounted(reported) : reported;
    const unreported = this.#unreportedOutput(brokenBy);
    const usage = inexactUsage({
      brokenBy,
      hasPassed: this.passed > 0,
      estimates: unreported === null ? estimates : 'conversation',
      reported,
      input: this.#observed.inputEstimate,
      output: this.#outputOf(unreported, brokenBy, tail),
    });
    const isOfImages = unreported === 'image' && reported === null && usage !== null;
    return isOfImages ? ofImages(usage) : usage;
  }

  /** Returns who ended the answer before its last medium: nobody, if a usage has said of how many it is. */
  #cutBy(brokenBy: BrokenBy): BrokenBy {
    return this.#counter?.usage?.calls === undefined ? brokenBy : null;
  }

  /** Without the end, text of a model could be mistaken for a member of the answer. */
  #hasWholeEnd(brokenBy: BrokenBy): boolean {
    return brokenBy === null || (this.#started && this.#judgeEnd().state === 'complete');
  }

  /** @param usage the usage of a complete answer */
  #allCounted(usage: Usage): Usage {
    const { estimates } = this.#rules.metering;
    const { inputEstimate } = this.#observed;
    if (estimates === 'input') return withEstimatedInput(usage, inputEstimate);
    if (estimates !== 'conversation' || (usage.output > 0 && usage.input > 0)) return usage;
    const tail = this.#started ? (this.#tail?.bytes() ?? null) : null;
    return withUncounted(usage, inputEstimate, this.#written(tail));
  }

  /** Estimates the output tokens. @param tail last bytes that passed; null for a whole answer */
  #written(tail: Buffer | null): number {
    return tail === null ? this.#wholeTokens : (this.#output?.tokens(this.#started ? tail : null) ?? 0);
  }

  /** Returns what an answer that reports no tokens is estimated as, if its endpoint does not estimate all of them. */
  #unreportedOutput(brokenBy: BrokenBy): Metering['unreported'] {
    const { unreported } = this.#rules.metering;
    const { estimated = 'none' } = this.#observed;
    if (unreported === null || estimated === 'none') return null;
    if (this.implausible !== null) return unreported;
    if (this.#started) {
      const isWhole = brokenBy === null || this.#judgeEnd().state === 'complete';
      return isWhole && estimated !== 'all' ? null : unreported;
    }
    // A client that leaves before the answer has had its request sent, which is charged.
    if (brokenBy === 'client' && this.passed === 0 && this.units === null) return unreported;
    return (brokenBy !== 'upstream' || this.passed > 0) && estimated === 'all' ? unreported : null;
  }

  #outputOf(unreported: Metering['unreported'], brokenBy: BrokenBy, tail: Buffer | null): number {
    if (unreported === null || unreported === 'transcript') return this.#written(tail);
    if (unreported === 'sound' && brokenBy !== null && this.passed === 0) return 0;
    if (this.#started && brokenBy !== null)
      return mediumTokens * Math.max(1, this.#chargedMedia(this.#cutBy(brokenBy)));
    const { requested = 1 } = this.#observed;
    const units = this.#counter?.units ?? (brokenBy === 'client' ? requested : 1);
    return mediumTokens * (brokenBy === null ? units : Math.max(1, units));
  }

  /**
   * Returns the number of media of a stream that are charged. An upstream whose client leaves makes all that it was asked for:
   * those of which nothing has arrived yet cost as much as if their client had left before.
   */
  #chargedMedia(brokenBy: BrokenBy): number {
    const { completed = 0, begun = 0 } = this.#counter ?? {};
    if (brokenBy === null) return completed;
    const most = Math.max(completed, this.#observed.requested ?? 1);
    return brokenBy === 'client' ? most : Math.min(begun, most);
  }

  /** Returns the number of those among them that the reported usage of a stream is not of. */
  #unreportedMedia(brokenBy: BrokenBy): number {
    const counter = this.#started ? this.#counter : null;
    if (counter === null || counter.reported === 0) return 0;
    return Math.max(0, this.#chargedMedia(brokenBy) - counter.reported);
  }

  whole(body: Buffer): Buffer {
    const { estimates, unreported, seconds } = this.#rules.metering;
    const usage = this.#check.checked(this.#rules.usageOf(body));
    const hasOutput = usage !== null && usage.output > 0;
    // Also of an answer that is an error: the operator pays for it.
    this.#usage = usage;
    this.#noteCharges(body);
    const withheld = this.#withheld.ofWhole(body, hasOutput || this.implausible !== null);
    if (withheld !== null) throw withheld;
    if (this.#watch !== null) this.#show(body, false);
    this.#observed.watchEnd?.(body);
    this.#observed.watchAll?.(body, false);
    if (usage === null && unreported === 'transcript') this.#wholeTokens = tokensOf(transcriptWeight(body));
    if (!hasOutput && estimates === 'conversation') {
      const { weight, media } = writtenIn(parseObject(body.toString('utf8')));
      this.#wholeTokens = tokensOf(weight) + mediumTokens * media;
    }
    // What is charged of a sound whose client leaves while it is sent.
    if (seconds !== null) {
      this.#output = new OutputEstimate();
      this.#output.passed = body.length;
    }
    this.#hear(body, body);
    this.made = this.#rules.madeOf?.(body) ?? null;
    this.#counter?.addWhole(body);
    this.units = this.#counter?.units ?? null;
    return this.#observed.amend === null ? body : this.#observed.amend(body);
  }

  /** Reads what a sound or transcript says of its length. */
  #hear(begin: Buffer, end: Buffer): void {
    const { seconds, unreported } = this.#rules.metering;
    if (seconds === null) return;
    this.mediaSeconds = seconds(begin, this.passed, end);
    if (unreported === 'transcript')
      this.isObject = begin[textStart(begin)] === OPEN_BRACE && lastOfText(end) === CLOSE_BRACE;
  }

  #judgeEnd(): StreamEnding {
    if (this.#ending !== null) return this.#ending;
    const long = this.#long;
    if (long?.usage != null) {
      this.#ending = long;
      return long;
    }
    const behind = this.#soFar === null ? Number.POSITIVE_INFINITY : this.passed - this.#soFar.passed;
    const before = behind <= tailBytes ? (this.#soFar?.ending ?? null) : null;
    const atEnd = this.#rules.judgeEnd(this.#tail?.bytes() ?? nothing, this.#facts);
    const usage = atEnd.usage ?? before?.usage ?? null;
    const ending = { ...(behind === 0 && before !== null ? before : atEnd), usage };
    // The middle of an event may repeat what a client has sent.
    const known = this.#large === null ? ending : this.#endingInside;
    this.#ending = long === null ? known : { ...long, usage: known.usage };
    return this.#ending;
  }

  get #endingInside(): StreamEnding {
    return { state: this.#ended ? 'complete' : 'incomplete', usage: this.#usageAtStart, error: null };
  }

  get #facts(): StreamFacts {
    return { usageAtStart: this.#usageAtStart, ended: this.#ended };
  }
}

/** Returns the length of the event at the end of a run that does not fit into the tail. */
function lastLength(events: Buffer): number {
  return eventLength(events, events.length - tailBytes);
}

/** Returns the last byte that is no white space. */
function lastOfText(bytes: Buffer): number | undefined {
  let at = bytes.length - 1;
  while (at >= 0 && (bytes[at] as number) <= SPACE) at--;
  return bytes[at];
}
