import type { OwnSecrets } from '../config/types.js';
import { isErrorName, isSignOfLife } from '../conversation/event-protocol.js';
import type { StreamRules } from '../conversation/stream-rules.js';
import { GatewayError } from '../errors.js';
import {
  keyAt,
  keyError,
  quotedKeyError,
  reportableError,
  vendorAccountError,
  vendorAccountErrorOf,
} from '../protocols/error-formats/vendor-account.js';
import {
  COLON,
  CR,
  LF,
  LOWER_E,
  LOWER_N,
  LOWER_S,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  SPACE,
} from '../wire/bytes.js';
import { parseObject, textOrNull } from '../wire/json.js';
import { skipSpace, wordAt } from '../wire/json-skip.js';
import { eventEnd, lastEventEnd, parseEvent } from '../wire/sse.js';
import { writtenIn } from './streamed-text.js';

/** A quoted text cannot contain another one. */
const errorKey = Buffer.from('"error');
const errorWord = errorKey.subarray(1);
const errorWordEnd = errorWord.subarray(1);
/** Largest event or answer that is checked for being an error. */
const longestError = 64 * 1024;
const endMark = '[DONE]';

/** The first event of a run that must not be passed on, and ends the answer. */
interface Withheld {
  /** Offset of the event. */
  readonly start: number;
  readonly error: GatewayError;
}

/** Which events of a run are only partly in it. */
interface Cut {
  /** The run begins within an event. */
  readonly first: boolean;
  /** The last event of the run continues after it. */
  readonly last: boolean;
}

/** All events of the run are whole. */
export const uncut: Cut = { first: false, last: false };

/**
 * Finds what must not reach clients in an answer that is passed on untouched: errors about the gateway's account at the upstream,
 * the gateway's API keys, and signs of life that SDKs would take for JSON. Each answer has one.
 */
export class WithheldEvents {
  readonly #rules: StreamRules;
  readonly #secrets: OwnSecrets;
  /** Created only for a stream. */
  #own: OwnEvents | null = null;
  /** Start and end of each sign of life in the run that `first` has searched. */
  #signs: number[] = [];
  /** Bytes of the events in that run that say nothing of the answer. */
  #idle = 0;
  /** An event of the answer has been passed on. */
  #hasBegun = false;

  constructor(rules: StreamRules, secrets: OwnSecrets) {
    this.#rules = rules;
    this.#secrets = secrets;
  }

  /** @param run the beginning of a stream. @returns the error before the first event of the protocol */
  atStart(run: Buffer): GatewayError | null {
    const own = this.#ownEvents();
    for (let start = 0; start < run.length; ) {
      const end = eventEnd(run, start);
      if (own.has(run, start, end)) return null;
      if (end - start <= longestError) {
        const { event, data } = parseEvent(run.toString('utf8', start, end));
        const error = this.#ofStrange(event, data);
        if (error !== null) return error;
      }
      start = end;
    }
    return null;
  }

  /** @param run whole events, or a part of one. @returns the first that must end the answer, or null */
  first(run: Buffer, cut: Cut): Withheld | null {
    if (this.#signs.length > 0) this.#signs = [];
    this.#idle = 0;
    const opened = this.#hasBegun ? 0 : this.#open(run, cut);
    let found: Withheld | null = null;
    let rest = run;
    const ofKey = keyAt(run, this.#secrets);
    if (ofKey !== -1) {
      found = { start: lastEventEnd(run, 0, ofKey), error: quotedKeyError() };
      rest = run.subarray(0, found.start);
    }
    const strange = this.#firstStrange(rest, cut, opened);
    if (strange !== null) {
      found = strange;
      rest = run.subarray(0, found.start);
    }
    const at = nextErrorWord(rest, 0);
    return at === -1 ? found : (this.#firstWithError(rest, at) ?? found);
  }

  /**
   * Returns whether the run that `first` has searched is only comments and signs of life.
   * @param run all of it, or the events before the one that was found
   */
  isIdle(run: Buffer): boolean {
    return this.#idle > 0 && this.#idle === run.length;
  }

  /**
   * Returns the run that `first` has searched without the signs of life in it.
   * @param run all of it, or the events before the one that was found
   */
  withoutSigns(run: Buffer): Buffer {
    if (this.#signs.length === 0) return run;
    const kept: Buffer[] = [];
    let from = 0;
    for (let i = 0; i < this.#signs.length; i += 2) {
      const start = this.#signs[i] as number;
      if (start >= run.length) break;
      kept.push(run.subarray(from, start));
      from = this.#signs[i + 1] as number;
    }
    return Buffer.concat([...kept, run.subarray(from)]);
  }

  /** @returns why a whole answer must not be passed on: it is or contains an error that must not reach clients */
  ofWhole(body: Buffer, hasOutput: boolean): GatewayError | null {
    const ofKey = keyError(body, this.#secrets);
    if (ofKey !== null) return ofKey;
    // An answer with output, as most are, can only contain an error beside it.
    if (body.length > longestError || (hasOutput && !hasError(body))) return null;
    const { keys } = this.#secrets;
    // Text can contain anything, and so can audio.
    if (!isJson(body)) return keys.some((key) => body.includes(key)) ? vendorAccountError(401, '') : null;
    const isOwn = this.#rules.marks.some((mark) => body.includes(mark));
    if (isOwn && !hasOutput && !hasError(body)) return null;
    const failure = vendorAccountErrorOf(body.toString('utf8'), isOwn ? 'own' : 'strange', this.#secrets);
    return failure ?? (isOwn ? null : this.#errorInPlace(body));
  }

  #ownEvents(): OwnEvents {
    this.#own ??= new OwnEvents(this.#rules.marks);
    return this.#own;
  }

  /**
   * Notes the signs of life before the first event of the answer: all that was judged to be silence there and is no JSON object,
   * whatever its name and length. Nobody takes it for an answer or for an error.
   * @returns where that event begins
   */
  #open(run: Buffer, cut: Cut): number {
    let start = 0;
    while (start < run.length) {
      const end = eventEnd(run, start);
      const isWhole = !(cut.last && end === run.length);
      this.#hasBegun = !isWhole || this.#rules.judgeStart(run.subarray(start, end)) !== 'silence';
      if (this.#hasBegun) return start;
      const text = run.toString('utf8', start, end);
      const { data } = parseEvent(text);
      if (data === null ? isDispatched(text) : parseObject(data) === null) this.#signs.push(start, end);
      start = end;
    }
    return start;
  }

  /**
   * Finds errors in events that do not belong to the protocol, and notes which of these are signs of life.
   * @param opened offset before which these are noted
   */
  #firstStrange(run: Buffer, cut: Cut, opened: number): Withheld | null {
    const own = this.#ownEvents();
    const isPlain = hasPlainLines(run);
    for (let from = 0; ; ) {
      const start = own.strangeFrom(run, from, isPlain);
      if (start === -1) return null;
      from = eventEnd(run, start);
      if (this.#rules.isHarmless?.(run, start, from)) continue;
      if (from - start > longestError) continue;
      const text = run.toString('utf8', start, from);
      const { event, data } = parseEvent(text);
      const isWhole = !(cut.first && start === 0) && !(cut.last && from === run.length);
      if (start >= opened && isWhole && isUnreadable(text, event, data)) this.#signs.push(start, from);
      if (isWhole && isIdle(event, data)) this.#idle += from - start;
      const error = this.#ofStrange(event, data);
      if (error !== null) return { start, error };
    }
  }

  /**
   * Finds errors within events of the protocol. Each event is parsed once, however often it contains the word.
   * @param first offset of the first occurrence of the word
   */
  #firstWithError(run: Buffer, first: number): Withheld | null {
    let from = 0;
    for (let at = first; at !== -1; at = nextErrorWord(run, at)) {
      const found = errorAt(run, at);
      at += errorWord.length;
      if (found === null) continue;
      const start = lastEventEnd(run, from, at);
      const next = eventEnd(run, at);
      const { data } = parseEvent(run.toString('utf8', start, next));
      const standing = found === 'name' ? 'error' : 'own';
      const error = data === null ? null : vendorAccountErrorOf(data, standing, this.#secrets);
      if (error !== null) return { start, error };
      from = next;
      at = next;
    }
    return null;
  }

  #ofStrange(event: string | null, data: string | null): GatewayError | null {
    if (data === null || data === endMark) return null;
    return vendorAccountErrorOf(data, event === 'error' ? 'error' : 'strange', this.#secrets);
  }

  /**
   * Returns the error in an answer with a successful status, as it would be in the first event of a stream. Null if the answer has
   * output beside it, which belongs to the client and is charged.
   */
  #errorInPlace(body: Buffer): GatewayError | null {
    if (!hasError(body)) return null;
    const answer = parseObject(body.toString('utf8'));
    if (!answer?.error || writtenIn(answer).weight > 0) return null;
    const judged = this.#rules.judgeStart(Buffer.from(`data: ${JSON.stringify(answer)}\n\n`));
    return judged instanceof GatewayError ? reportableError(judged, this.#secrets) : null;
  }
}

/** Fields of an event without data that OpenAI's and Anthropic's SDKs for Python do not skip. */
const dispatchedField = /^\ufeff?(?:(?:event|id): ?[^\r\n]|retry: *\d)/m;

/**
 * Whether an SDK parses the data of an event that has none as JSON, and ends the stream of its client
 * (https://github.com/openai/openai-python/issues/2722). Comments, blank lines and unknown fields are no event.
 */
function isDispatched(text: string): boolean {
  return dispatchedField.test(text);
}

/** Whether an event is a sign of life that ends the stream of an SDK. Nothing with the name of an error is one. */
function isUnreadable(text: string, event: string | null, data: string | null): boolean {
  if (event !== null && isErrorName(event)) return false;
  if (data === null) return isDispatched(text);
  return isSignOfLife(event, data) && parseObject(data) === null;
}

/** Longest data of an event that may be a sign of life. */
const longestSign = 128;

/** Whether an event is a comment, or a short one that has the name or type of a sign of life. */
function isIdle(event: string | null, data: string | null): boolean {
  if (data === null) return event === null || isSignOfLife(null, event);
  if (data.length > longestSign) return false;
  // The end mark is no JSON, and an error of its parser takes as long as many events.
  const name = event ?? (data.startsWith('{') ? textOrNull(parseObject(data)?.type) : null);
  return name !== null && isSignOfLife(null, name);
}

/** Whether a whole answer has an error, and not only an empty member for one. */
function hasError(body: Buffer): boolean {
  for (let at = body.indexOf(errorKey); at !== -1; at = body.indexOf(errorKey, at)) {
    at += errorKey.length;
    if (body[at] === LOWER_S) at++;
    if (body[at] === QUOTE && !isNull(body, at + 1)) return true;
  }
  return false;
}

function isJson(body: Buffer): boolean {
  const first = body[skipSpace(body, 0)];
  return first === OPEN_BRACE || first === OPEN_BRACKET;
}

/** Returns the offset of the next occurrence of the word, or -1. Searches for its end, which begins with a rarer letter. */
function nextErrorWord(run: Buffer, from: number): number {
  for (let at = run.indexOf(errorWordEnd, from); at !== -1; at = run.indexOf(errorWordEnd, at + 1)) {
    if (at > from && run[at - 1] === LOWER_E) return at - 1;
  }
  return -1;
}

/** Where the word occurs in an event: as a name or value that is not followed by null, as the event's name, or elsewhere. */
function errorAt(run: Buffer, at: number): 'member' | 'name' | null {
  const end = at + errorWord.length + (run[at + errorWord.length] === LOWER_S ? 1 : 0);
  if (run[at - 1] === QUOTE) return run[end] === QUOTE && !isNull(run, end + 1) ? 'member' : null;
  const colonAt = run[at - 1] === SPACE ? at - 2 : at - 1;
  const isName =
    run[colonAt] === COLON && run.toString('latin1', Math.max(0, colonAt - 5), colonAt) === 'event';
  return isName ? 'name' : null;
}

/** Whether the value after a key is null, as for an absent error. */
function isNull(bytes: Buffer, at: number): boolean {
  let value = at;
  while (bytes[value] === COLON || bytes[value] === SPACE) value++;
  return bytes[value] === LOWER_N;
}

const wordBytes = 4;
const nothing = Buffer.alloc(0);

/**
 * Finds events of a stream without the mark that all events of its protocol have. Since events resemble each other, the mark is
 * expected where the last event had it. That takes 50 ns an event, a fraction of a search.
 */
export class OwnEvents {
  readonly #marks: readonly Buffer[];
  /** The mark of the last event, and its distance from the beginning of the event. */
  #mark: Buffer = nothing;
  /** Its bytes as words. The last word ends with the mark. */
  #words: Int32Array = new Int32Array(0);
  #offset = 0;

  /** @param marks each event of the protocol contains one of these */
  constructor(marks: readonly Buffer[]) {
    this.#marks = marks;
  }

  /**
   * @param run whole events
   * @param from offset of an event
   * @param isPlain no line ends with a CR: see `hasPlainLines`
   * @returns offset of the first event without a mark, or -1
   */
  strangeFrom(run: Buffer, from: number, isPlain: boolean): number {
    for (let start = from; start < run.length; ) {
      const at = start + this.#offset;
      let end = isPlain && this.#isMarked(run, at) ? endBehind(run, start, at) : -1;
      if (end === -1) {
        end = eventEnd(run, start);
        if (!this.has(run, start, end)) return start;
      }
      start = end;
    }
    return -1;
  }

  /** Whether these bytes are an event of the protocol. */
  has(run: Buffer, start: number, end: number): boolean {
    const event = run.subarray(start, end);
    for (const mark of this.#marks) {
      const at = event.indexOf(mark);
      if (at === -1) continue;
      if (mark !== this.#mark) this.#words = wordsOf(mark);
      this.#mark = mark;
      this.#offset = at;
      return true;
    }
    return false;
  }

  /** Compares words, which takes half the time of comparing bytes. */
  #isMarked(run: Buffer, at: number): boolean {
    const words = this.#words;
    const last = words.length - 1;
    const lastAt = at + this.#mark.length - wordBytes;
    if (last === -1 || lastAt + wordBytes > run.length) return false;
    for (let i = 0, word = at; i < last; i++, word += wordBytes)
      if (wordAt(run, word) !== words[i]) return false;
    return wordAt(run, lastAt) === words[last];
  }
}

/** @returns no words for a mark that is shorter than a word; then each event is searched */
function wordsOf(mark: Buffer): Int32Array {
  const count = mark.length < wordBytes ? 0 : Math.ceil(mark.length / wordBytes);
  const lastAt = mark.length - wordBytes;
  const words = new Int32Array(count);
  for (let i = 0; i < count; i++) words[i] = wordAt(mark, Math.min(i * wordBytes, lastAt));
  return words;
}

/** An event may end with CRs only, and a following LF belongs to the next one. */
export function hasPlainLines(run: Buffer): boolean {
  return run.indexOf(CR) === -1;
}

/**
 * Returns the end of the event that begins at `start` and has its mark at `at`; -1 if the event is not plain, which means that its
 * data is one line, and the last.
 */
function endBehind(run: Buffer, start: number, at: number): number {
  let lineEnd = run.indexOf(LF, start);
  // A blank line before the data means that the mark belongs to another event.
  while (lineEnd !== -1 && lineEnd < at) {
    if (run[lineEnd + 1] === LF) return -1;
    lineEnd = run.indexOf(LF, lineEnd + 1);
  }
  return lineEnd !== -1 && run[lineEnd + 1] === LF ? lineEnd + 2 : -1;
}
