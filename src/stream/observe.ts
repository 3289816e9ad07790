import type { OwnSecrets } from '../config/types.js';
import {
  type BrokenBy,
  inexactUsage,
  isOfMedium,
  mediumTokens,
  tokensOf,
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
  type StreamVerdict,
} from '../conversation/stream-rules.js';
import type { MadeMedia, Usage } from '../conversation/usage.js';
import { GatewayError } from '../errors.js';
import { keyAt, keyError, quotedKeyError, tellable } from '../protocols/error-formats/own-secrets.js';
import { vendorAccountErrorOf } from '../protocols/error-formats/vendor-account.js';
import { vendorAccountError } from '../protocols/error-formats/vendor-account-error.js';
import { parseObject } from '../wire/json.js';
import { skipSpace, textStart } from '../wire/json-skip.js';
import { eventEnd, firstEventEnd, lastEventEnd, parseEvent } from '../wire/sse.js';
import type { AnswerTransform, HeldEnd, TransformEnd } from './answer-transform.js';
import { OpenJson } from './open-json.js';
import { hasPlainLines, OwnEvents } from './own-events.js';
import { streamedWeight, writtenWeight } from './streamed-text.js';
import { Tail, tailBytes } from './tail.js';

/** Answers up to this size leave in one piece, so that an upstream that dies in their middle is still an error status. */
const wholeBytes = 256 * 1024;
/** The same for answers that may have to be changed. */
const amendedBytes = 64 * 1024 * 1024;
/** An event that is larger is passed on in parts. */
const eventBytes = 1024 * 1024;
/** Comments before the first event that are kept back. */
const earlyBytes = 16 * 1024;
/** Smaller pieces of an answer hold no media to speak of. */
const leastWithMedia = 4 * 1024;
/** So much of the beginning tells the length of a sound. */
const beginBytes = 256;

/** A quoted text cannot stand inside another one. */
const errorKey = Buffer.from('"error');
const errorWord = errorKey.subarray(1);
const errorWordEnd = errorWord.subarray(1);
/** What is an error is short. */
const longestError = 64 * 1024;
/** Runs of a stream in which its beginning is looked for. */
const mostWatched = 4;
/** Behind the end of a stream comes a mark, if anything. */
const mostBehind = 4096;
const endMark = '[DONE]';
const colon = 0x3a;
const space = 0x20;
const letterE = 0x65;
const letterN = 0x6e;
const letterS = 0x73;
const quote = 0x22;
const openBrace = 0x7b;
const openBracket = 0x5b;
const nothing = Buffer.alloc(0);

/** Whether a whole answer has an error, and not only a place for one. */
function hasError(body: Buffer): boolean {
  for (let at = body.indexOf(errorKey); at !== -1; at = body.indexOf(errorKey, at)) {
    at += errorKey.length;
    if (body[at] === letterS) at++;
    if (body[at] === quote && !isNull(body, at + 1)) return true;
  }
  return false;
}

function isJson(body: Buffer): boolean {
  const first = body[skipSpace(body, 0)];
  return first === openBrace || first === openBracket;
}

/** Where the word stands next, or -1. Found by its end, whose first letter is rarer than its own. */
function nextErrorWord(run: Buffer, from: number): number {
  for (let at = run.indexOf(errorWordEnd, from); at !== -1; at = run.indexOf(errorWordEnd, at + 1)) {
    if (at > from && run[at - 1] === letterE) return at - 1;
  }
  return -1;
}

/** How the word stands in an event: as a name or value that is not followed by null, as the event's name, or else. */
function errorAt(run: Buffer, at: number): 'member' | 'name' | null {
  const end = at + errorWord.length + (run[at + errorWord.length] === letterS ? 1 : 0);
  if (run[at - 1] === quote) return run[end] === quote && !isNull(run, end + 1) ? 'member' : null;
  const colonAt = run[at - 1] === space ? at - 2 : at - 1;
  const isName =
    run[colonAt] === colon && run.toString('latin1', Math.max(0, colonAt - 5), colonAt) === 'event';
  return isName ? 'name' : null;
}

/** Whether the value behind a key is null, as that of an error is which there is not. */
function isNull(bytes: Buffer, at: number): boolean {
  let value = at;
  while (bytes[value] === colon || bytes[value] === space) value++;
  return bytes[value] === letterN;
}

/** Is shown what passes of an answer, from its beginning. @returns true when it wants to see no more */
export type AnswerWatch = (piece: Buffer, isStream: boolean) => boolean;

/** Nothing begins there that could be taken for an answer of its own. */
function behindBraces(part: Buffer): Buffer {
  let rest = part;
  for (let at = textStart(rest); rest[at] === openBrace; at = textStart(rest)) rest = rest.subarray(at + 1);
  return rest;
}

interface Observed {
  readonly rules: StreamRules;
  /** The usage event was asked for by the gateway alone, and is kept from the client. */
  readonly hideUsage: boolean;
  /** The upstream decides whether its answer is a stream. */
  readonly streamsUnasked: boolean;
  /** An error answer is in the client's own protocol; unless given, it is. */
  readonly exactErrors?: boolean;
  /** Changes a whole answer, or null for answers that pass as they come. */
  readonly amend: ((answer: Buffer) => Buffer) | null;
  /** What is kept of the answer; null for nothing. */
  readonly keep: Keep | null;
  readonly watch?: AnswerWatch | null;
  /** Tokens that the request is thought to have cost, for an upstream that reports nothing. */
  readonly inputEstimate: number;
  /**
   * A stream that breaks off is estimated as `Metering.broken` says: what else is paid of it does not pay for that.
   * Unless given, it is not.
   */
  readonly estimatesBroken?: boolean;
  /** Of the gateway at the upstream: no answer may tell its keys, and no error any of them. */
  readonly secrets: OwnSecrets;
}

/** An event in place of one of the protocol's own that may not be passed on. */
interface Failure {
  /** Where it begins. */
  readonly start: number;
  readonly error: GatewayError;
}

/** Passes an answer on as it comes, and reads its usage and whether it has ended. */
export class ObservedTransform implements AnswerTransform {
  readonly wholeBytes: number;
  readonly divisible: boolean;
  readonly eventBytes: number = eventBytes;
  readonly exactErrors: boolean;
  readonly isCut = false;
  readonly keep: Keep | null;
  held: HeldEnd | null = null;
  readonly toldError = null;
  withheldError: GatewayError | null = null;
  readonly streamsUnasked: boolean;
  readonly #observed: Observed;
  readonly #rules: StreamRules;
  #charges: AnswerCharges | null = null;
  /** Null for an answer that is no stream. */
  #own: OwnEvents | null = null;
  #usage: Usage | null = null;
  #tail: Tail | null = null;
  /** Comments before the first event. */
  #early: Buffer | null = null;
  #usageAtStart: Usage | null = null;
  /** Number of the last event in the last run that was too long for the tail. */
  #number: number | null = null;
  #started = false;
  #ended = false;
  /** What passed last was a part of an event, whose end is still to come. */
  #isInside = false;
  /** What is open in that event. */
  #open: OpenJson | null = null;
  /** How the stream has ended, where its last event was longer than the tail. */
  #long: StreamEnding | null = null;
  /** What is known of its end by what has passed; asked for several times at the end. */
  #ending: StreamEnding | null = null;
  /** Bytes of the answer that have passed. */
  #passed = 0;
  /** How many of them were images and sounds in base64, whose tokens their length does not tell. */
  #passedOfMedia = 0;
  #media = 0;
  #inMedium = false;
  #watch: AnswerWatch | null;
  #watched = 0;
  /** Bytes that have come behind the end. */
  #behind = 0;
  /** Tokens of a whole answer that says nothing of them. */
  #wholeTokens = 0;
  /** The first bytes of an answer that is passed on in pieces, where they tell how long it lasts. */
  #begin: Buffer | null = null;
  mediaSeconds = 0;
  made: MadeMedia | null = null;

  constructor(observed: Observed) {
    this.#observed = observed;
    this.#rules = observed.rules;
    this.#watch = observed.watch ?? null;
    this.keep = observed.keep;
    const isGathered = observed.amend !== null || observed.keep !== null;
    this.wholeBytes = isGathered ? amendedBytes : (observed.rules.wholeBytes ?? wholeBytes);
    this.divisible = observed.amend === null;
    this.streamsUnasked = observed.streamsUnasked;
    this.exactErrors = observed.exactErrors ?? true;
  }

  get kept(): number {
    return this.keep?.gathered?.() ?? 0;
  }

  /** What follows the last event would come behind what waits. */
  get endsItself(): boolean {
    return this.held !== null;
  }

  get usage(): Usage | null {
    if (this.#usage === null && this.#tail !== null)
      this.#usage = this.#started ? this.#judgeEnd().usage : this.#rules.usageOf(this.#tail.bytes());
    return this.#usage;
  }

  judge(run: Buffer): StreamVerdict {
    const all = this.#early === null ? run : Buffer.concat([this.#early, run]);
    const ofKey = keyError(all, this.#observed.secrets);
    if (ofKey !== null) return ofKey;
    const verdict = this.#rules.judgeStart(all);
    if (verdict === 'silence' && all.length < earlyBytes) {
      this.#early = Buffer.from(all);
      return verdict;
    }
    const failure = this.#failureAtStart(all);
    if (failure !== null) return failure;
    if (verdict instanceof GatewayError) return tellable(verdict, this.#observed.secrets);
    return 'meaningful';
  }

  pass(run: Buffer, isPart = false): Buffer {
    if (!this.#started) {
      this.#started = true;
      if (this.#early !== null) run = Buffer.concat([this.#early, run]);
      this.#early = null;
      if (this.#rules.usageAtStart !== null) this.#usageAtStart = this.#rules.usageAtStart(run);
    }
    const ofKey = keyAt(run, this.#observed.secrets);
    if (ofKey !== -1) {
      this.withheldError = quotedKeyError();
      run = run.subarray(0, lastEventEnd(run, 0, ofKey));
    }
    const failure = this.#failureIn(run);
    if (failure !== null) {
      this.withheldError = failure.error;
      run = run.subarray(0, failure.start);
    }
    if (nextErrorWord(run, 0) !== -1) run = this.#withoutVendorAccount(run);
    const wasInside = this.#isInside;
    const before = wasInside && this.#tail !== null ? Buffer.from(this.#tail.bytes()) : nothing;
    this.#tail ??= new Tail();
    this.#tail.add(run);
    // What is cut where something is withheld is cut behind an event.
    this.#isInside = this.withheldError === null ? isPart : wasInside && run.length === 0;
    const part = this.#isInside || wasInside ? this.#partOf(before, run, wasInside) : run;
    this.#noteCharges(part);
    this.#ending = null;
    this.#usage = null;
    this.#count(run);
    if (run.length > tailBytes) this.#number = this.#rules.lastNumber?.(run) ?? this.#number;
    if (this.#rules.marksEnd !== null) this.#noteEnd(run, part, this.#rules.marksEnd, wasInside);
    if (this.#watch !== null) this.#show(run, true);
    const { keep } = this;
    if (keep !== null && this.#holds(keep, run)) return nothing;
    return this.#observed.hideUsage ? this.#rules.hideUsage(run) : run;
  }

  #noteCharges(run: Buffer): void {
    const { noteCharges } = this.#rules;
    if (noteCharges === undefined) return;
    this.#charges ??= noCharges();
    noteCharges(run, this.#charges);
  }

  /** A part of an event with what stood before it, and the ends of all that is open: what stands in it is as deep as in the whole. */
  #partOf(before: Buffer, run: Buffer, wasInside: boolean): Buffer {
    if (!wasInside) this.#open = new OpenJson();
    const from = wasInside ? 0 : lastEventEnd(run, 0, run.length);
    if (this.#isInside) this.#open?.add(run, from);
    const ends = this.#isInside ? (this.#open?.ends ?? '') : '';
    const part = Buffer.concat([before, run, Buffer.from(ends)]);
    return wasInside ? behindBraces(part) : part;
  }

  /** Some upstreams leave out the blank line behind their last event: where the stream ends well, the event has ended. */
  #endEvent(): void {
    if (!this.#isInside || this.#open?.isClosed !== true) return;
    this.#isInside = false;
    this.#ending = null;
    this.#usage = null;
  }

  /**
   * Of a last event that is longer than the tail, its end alone tells neither its usage nor whether it is an error. In
   * one that passes in parts the first one tells the error, and the first or the last one the usage: what a client has sent and the
   * answer repeats is told from the answer's own by how much ends behind it.
   * @param part the run as `#partOf` makes it
   */
  #noteEnd(run: Buffer, part: Buffer, marksEnd: (run: Buffer) => boolean, wasInside: boolean): void {
    const isLastPart = this.#ended && wasInside && !this.#isInside;
    if (!this.#ended) this.#ended = marksEnd(run);
    else if (!isLastPart) return;
    if (!this.#ended || run.length <= tailBytes) return;
    const { state, error, usage: told } = this.#rules.judgeEnd(this.#isInside ? part : run, this.#facts);
    const usage = told ?? this.#long?.usage ?? null;
    if (this.#long?.error != null) this.#long = { ...this.#long, usage };
    else if (error !== null || usage !== null) this.#long = { state, error, usage };
  }

  #show(piece: Buffer, isStream: boolean): void {
    this.#watched += 1;
    if (this.#watch?.(piece, isStream) === true || this.#watched === mostWatched) this.#watch = null;
  }

  /** Keeps back the run that ends an answer of which something is to be kept, and what comes behind it. */
  #holds(keep: Keep, run: Buffer): boolean {
    if (this.held !== null) {
      this.#behind += run.length;
      if (this.#behind <= mostBehind) this.held.end = Buffer.concat([this.held.end, run]);
      return true;
    }
    keep.see?.(run);
    // Where nobody else notes the end, the records tell that it has come.
    if ((!this.#ended && this.#rules.marksEnd !== null) || this.withheldError !== null) return false;
    const records = keep.records(run, true);
    if (records.length > 0) this.held = { keep, records, end: Buffer.from(run), isStream: true };
    return this.held !== null;
  }

  /** The first event that is none of the protocol's own and may not be passed on, or null. */
  #failureIn(run: Buffer): Failure | null {
    this.#own ??= new OwnEvents(this.#rules.marks);
    const isPlain = hasPlainLines(run);
    for (let from = 0; ; ) {
      const start = this.#own.strangeFrom(run, from, isPlain);
      if (start === -1) return null;
      from = eventEnd(run, start);
      if (this.#rules.isHarmless?.(run, start, from)) continue;
      const error = this.#failureOf(run, start, from);
      if (error !== null) return { start, error };
    }
  }

  /** The same where nothing of the protocol's own stands before it. */
  #failureAtStart(run: Buffer): GatewayError | null {
    this.#own ??= new OwnEvents(this.#rules.marks);
    for (let start = 0; start < run.length; ) {
      const end = eventEnd(run, start);
      if (this.#own.has(run, start, end)) return null;
      const error = this.#failureOf(run, start, end);
      if (error !== null) return error;
      start = end;
    }
    return null;
  }

  #failureOf(run: Buffer, start: number, end: number): GatewayError | null {
    if (end - start > longestError) return null;
    const { event, data } = parseEvent(run.toString('utf8', start, end));
    if (data === null || data === endMark) return null;
    return vendorAccountErrorOf(data, event === 'error' ? 'error' : 'strange', this.#observed.secrets);
  }

  /**
   * An event of the protocol's own may have an error in it. Each is parsed once, however often it has the word.
   * @returns what comes before one that may not be passed on
   */
  #withoutVendorAccount(run: Buffer): Buffer {
    let from = 0;
    for (let at = nextErrorWord(run, 0); at !== -1; at = nextErrorWord(run, at)) {
      const found = errorAt(run, at);
      at += errorWord.length;
      if (found === null) continue;
      const start = lastEventEnd(run, from, at);
      const next = firstEventEnd(run, at, run.length);
      const { data } = parseEvent(run.toString('utf8', start, next === -1 ? run.length : next));
      const standing = found === 'name' ? 'error' : 'own';
      const error = data === null ? null : vendorAccountErrorOf(data, standing, this.#observed.secrets);
      if (error !== null) {
        this.withheldError = error;
        return run.subarray(0, start);
      }
      if (next === -1) return run;
      from = next;
      at = next;
    }
    return run;
  }

  get isComplete(): boolean {
    if (!this.#started) return false;
    if (this.#rules.marksEnd === null) return this.#judgeEnd().state === 'complete';
    return this.#ended && this.#judgeEnd().state !== 'failed';
  }

  end(): TransformEnd {
    this.#endEvent();
    const { state, usage } = this.#judgeEnd();
    this.#usage = usage;
    return {
      last: null,
      error: state === 'incomplete' ? endedEarly() : null,
    };
  }

  get passedError(): GatewayError | null {
    const error = this.#started ? this.#judgeEnd().error : null;
    return error === null ? null : tellable(error, this.#observed.secrets);
  }

  get nextNumber(): number {
    const tail = this.#tail?.bytes() ?? null;
    const last = (tail === null ? null : this.#rules.lastNumber?.(tail)) ?? this.#number;
    return last === null ? 0 : last + 1;
  }

  lastWords(_error: GatewayError, event: string): string {
    return event;
  }

  note(chunk: Buffer): void {
    if (this.#watch !== null && this.#tail === null) this.#show(chunk, false);
    if (this.#tail === null) {
      this.#tail = new Tail();
      if (this.#rules.metering.seconds !== null) this.#begin = Buffer.from(chunk.subarray(0, beginBytes));
    }
    this.#tail.add(chunk);
    this.#usage = null;
    this.#count(chunk);
  }

  #count(passed: Buffer): void {
    this.#passed += passed.length;
    if (passed.length < leastWithMedia) return;
    const isMedium = isOfMedium(passed);
    if (isMedium) this.#passedOfMedia += passed.length;
    if (isMedium && !this.#inMedium) this.#media++;
    this.#inMedium = isMedium;
  }

  usageAtEnd(brokenBy: BrokenBy): Usage | null {
    if (brokenBy === null) this.#endEvent();
    const usage = this.#tokensAtEnd(brokenBy);
    const charges = this.#charges;
    return usage === null || charges === null ? usage : chargedUsage(usage, charges);
  }

  #tokensAtEnd(brokenBy: BrokenBy): Usage | null {
    const { estimates, grows, seconds } = this.#rules.metering;
    const reported = this.usage;
    const tail = this.#tail?.bytes() ?? null;
    if (seconds !== null && tail !== null)
      this.mediaSeconds = seconds(this.#begin ?? tail, this.#passed, tail);
    if (tail !== null) this.made = this.#rules.madeOf?.(tail) ?? null;
    const isWhole = !grows || !this.#started || brokenBy === null || this.#judgeEnd().state === 'complete';
    if (reported !== null && isWhole) return reported;
    const broken = this.#brokenOutput(brokenBy);
    return inexactUsage({
      brokenBy,
      hasPassed: this.#passed > 0,
      estimates: broken === null ? estimates : 'conversation',
      reported,
      input: this.#observed.inputEstimate,
      output: broken === 'medium' ? mediumTokens : this.#outputEstimate(tail),
    });
  }

  #brokenOutput(brokenBy: BrokenBy): Metering['broken'] {
    if (brokenBy === null || !this.#started || this.#observed.estimatesBroken !== true) return null;
    return this.#judgeEnd().state === 'complete' ? null : this.#rules.metering.broken;
  }

  #outputEstimate(tail: Buffer | null): number {
    if (tail === null) return this.#wholeTokens;
    const written = this.#started ? streamedWeight(tail, this.#passed) : this.#passed;
    const ofText = this.#passedOfMedia === 0 ? 1 : 1 - this.#passedOfMedia / this.#passed;
    return this.#media * mediumTokens + tokensOf(written * ofText);
  }

  whole(body: Buffer): Buffer {
    const { estimates, seconds } = this.#rules.metering;
    const usage = this.#rules.usageOf(body);
    const hasOutput = usage !== null && usage.output > 0;
    const ofVendorAccount = keyError(body, this.#observed.secrets) ?? this.#wholeFailure(body, hasOutput);
    if (ofVendorAccount !== null) throw ofVendorAccount;
    if (this.#watch !== null) this.#show(body, false);
    this.#usage = usage;
    this.#noteCharges(body);
    if (this.#usage === null && estimates === 'conversation')
      this.#wholeTokens = tokensOf(writtenWeight(parseObject(body.toString('utf8'))));
    if (seconds !== null) this.mediaSeconds = seconds(body, body.length, body);
    this.made = this.#rules.madeOf?.(body) ?? null;
    return this.#observed.amend === null ? body : this.#observed.amend(body);
  }

  /** Why a whole answer may not be passed on: it is or has an error that must not be told. */
  #wholeFailure(body: Buffer, hasOutput: boolean): GatewayError | null {
    // What has made output is an answer, and most are: an error may only stand beside it.
    if (body.length > longestError || (hasOutput && !hasError(body))) return null;
    const { secrets } = this.#observed;
    // Of a text, which may say anything, and of a sound.
    if (!isJson(body))
      return secrets.keys.some((key) => body.includes(key)) ? vendorAccountError(401, '') : null;
    const isOwn = this.#rules.marks.some((mark) => body.includes(mark));
    if (isOwn && !hasOutput && !hasError(body)) return null;
    const failure = vendorAccountErrorOf(body.toString('utf8'), isOwn ? 'own' : 'strange', secrets);
    return failure ?? (isOwn ? null : this.#errorInPlace(body));
  }

  /**
   * The error that an upstream answers with under a good status: what it would be as the first event of a stream. None
   * where anything was written beside it: that is the client's, and paid for.
   */
  #errorInPlace(body: Buffer): GatewayError | null {
    if (!hasError(body)) return null;
    const answer = parseObject(body.toString('utf8'));
    if (!answer?.error || writtenWeight(answer) > 0) return null;
    const verdict = this.#rules.judgeStart(Buffer.from(`data: ${JSON.stringify(answer)}\n\n`));
    return verdict instanceof GatewayError ? tellable(verdict, this.#observed.secrets) : null;
  }

  #judgeEnd(): StreamEnding {
    if (this.#ending !== null) return this.#ending;
    const long = this.#long;
    if (long?.usage != null) {
      this.#ending = long;
      return long;
    }
    const ending = this.#rules.judgeEnd(this.#tail?.bytes() ?? nothing, this.#facts);
    // What stands in the middle of an event may be anybody's.
    const known = this.#isInside ? { ...ending, usage: this.#usageAtStart } : ending;
    this.#ending = long === null ? known : { ...long, usage: known.usage };
    return this.#ending;
  }

  get #facts(): StreamFacts {
    return { usageAtStart: this.#usageAtStart, ended: this.#ended };
  }
}
