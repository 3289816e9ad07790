import { tokensOf, weightOfToken } from '../../conversation/estimate-usage.js';
import { noParts, type Usage, withCharges } from '../../conversation/usage.js';
import { isObject, type JsonObject, numberOrNull, parseObject, textOf } from '../../wire/json.js';
import { afterColon, endOfString } from '../../wire/json-skip.js';
import { rawTextWeight } from '../../wire/text-weight.js';
import { createUsageReader, tokenNames } from '../openai-shared/usage.js';
import { responseDone, transcribed, typeBytes, typeOfEvent } from './event-type.js';

const reader = createUsageReader(tokenNames);
/** A response's usage is that of a member of its event, and its metadata may say anything. */
const levels = 2;

/**
 * @returns what a server event says that a response, or the transcript of what was said, has used; null for every other
 * event, and where seconds are counted
 */
export function usageOfEvent(event: Buffer): Usage | null {
  const type = typeOfEvent(event);
  return type === responseDone || type === transcribed ? reader.lastUsageWithin(event, levels) : null;
}

/** @returns the seconds that a server event says to have been made a text of, or 0 */
export function secondsOfEvent(event: Buffer): number {
  if (typeOfEvent(event) !== transcribed) return 0;
  const usage = parseObject(event.toString('utf8'))?.usage;
  const seconds = (isObject(usage) ? numberOrNull(usage.seconds) : null) ?? 0;
  return seconds >= 0 && seconds <= Number.MAX_SAFE_INTEGER ? seconds : 0;
}

const begun = 'response.created';
const refused = 'error';
const ofResponse = Buffer.from('"response.');
const anyDelta = Buffer.from('.delta"');
const audioDelta = Buffer.from('audio.delta"');
const transcribing = 'conversation.item.input_audio_transcription.delta';
const untranscribed = 'conversation.item.input_audio_transcription.failed';
/** Of sound that a model makes: one for 50 ms (https://platform.openai.com/docs/guides/realtime-costs). */
const tokensPerSecond = 20;

/** Types of an item that begins: the older name, and the one since 2025. */
const itemsBegun: readonly string[] = ['conversation.item.created', 'conversation.item.added'];

/** A response that ends is told once more soon, if at all, and so is the transcript of what was said. */
const mostEnded = 64;
/** A longer id is none that is kept. */
const longestId = 256;

/** What an upstream was asked for or has begun and not told the usage of: responses, or a transcript of what was said. */
export class OpenUsage {
  #responses = 0;
  /** Responses that the client has asked for and the upstream has neither begun nor refused. */
  #asked = 0;
  #isTranscribing = false;
  #bytesPerSecond = usualBytesPerSecond;
  /** What deltas have shown of the responses under way: seconds of sound, and text by `textWeight`. */
  #seconds = 0;
  #weight = 0;
  /** Ids of responses under way, and of the last that have ended. */
  readonly #begun = new Set<string>();
  readonly #ended = new Set<string>();
  /** Of which the transcripts have been told last: each a content index, a blank and the id of an item. */
  readonly #transcribed = new Set<string>();

  get isOpen(): boolean {
    return this.mayMakeResponse || this.#isTranscribing;
  }

  /** Responses are under way, or asked for, and the upstream can be asked to end them. */
  get mayMakeResponse(): boolean {
    return this.#responses > 0 || this.#asked > 0;
  }

  /** Responses are under way. */
  get hasResponse(): boolean {
    return this.#responses > 0;
  }

  /** The output that responses under way have shown so far, as it is thought to count; null for none. */
  get shown(): Usage | null {
    const audioOutput = Math.ceil(this.#seconds * tokensPerSecond);
    const output = audioOutput + tokensOf(this.#weight);
    if (output === 0) return null;
    const usage = { input: 0, output, cached: 0, cacheWritten: 0, reasoning: 0 };
    return withCharges(usage, { parts: { ...noParts, audioOutput } });
  }

  /** Takes note of an event of the client that may ask for a response: its upstream may bill one that it has not begun yet. */
  ask(): void {
    this.#asked++;
  }

  /**
   * Whether a server event tells again of a response that has ended, or of a transcript, and its response or item has not begun
   * anew since: servers that call all of them alike say when each begins.
   */
  tellsAgain(event: Buffer): boolean {
    switch (typeOfEvent(event)) {
      case responseDone:
        return this.#endsAgain(responseId(responseOf(event)));
      case transcribed:
        return this.#transcribesAgain(objectOf(event));
      default:
        return false;
    }
  }

  #endsAgain(id: string): boolean {
    if (this.#ended.has(id)) return true;
    if (this.#begun.delete(id)) addToLast(this.#ended, id);
    return false;
  }

  #transcribesAgain(event: JsonObject | null): boolean {
    const id = idOf(event?.item_id);
    if (id === '') return false;
    const transcript = `${numberOrNull(event?.content_index) ?? 0} ${id}`;
    if (!this.#transcribed.has(transcript)) {
      addToLast(this.#transcribed, transcript);
      return false;
    }
    this.#isTranscribing = false;
    return true;
  }

  /**
   * Takes note of a server event that may tell of usage, in their order.
   * @param told the usage that it tells of
   * @returns what was shown of a response that has ended without telling any; null for nothing
   */
  note(event: Buffer, told: Usage | null): Usage | null {
    const type = typeOfEvent(event);
    switch (type) {
      case begun:
        this.#begin(responseOf(event));
        break;
      case responseDone:
        return this.#endResponse(told);
      case transcribing:
        this.#isTranscribing = true;
        break;
      case transcribed:
      case untranscribed:
        this.#isTranscribing = false;
        break;
      default:
        if (itemsBegun.includes(type)) this.#beginItem(event);
        this.noteDelta(event);
    }
    return null;
  }

  /** Takes note of any other server event, for what it shows of a response. */
  noteDelta(event: Buffer): void {
    if (this.#asked > 0 && typeOfEvent(event) === refused) this.#answerAsked();
    if (this.#responses === 0) return;
    const type = typeBytes(event);
    if (!type.includes(anyDelta) || !type.includes(ofResponse)) return;
    if (type.includes(audioDelta)) this.#seconds += audioBytesOf(event) / this.#bytesPerSecond;
    else this.#weight += textWeightOf(event);
  }

  #begin(response: JsonObject | null): void {
    this.#responses++;
    this.#answerAsked();
    this.#bytesPerSecond = audioBytesPerSecond(response);
    const id = responseId(response);
    this.#ended.delete(id);
    if (id !== '' && this.#begun.size < mostEnded) this.#begun.add(id);
  }

  #beginItem(event: Buffer): void {
    if (this.#transcribed.size === 0) return;
    const id = idOf(memberOf(objectOf(event), 'item')?.id);
    for (const transcript of this.#transcribed)
      if (transcript.endsWith(` ${id}`)) this.#transcribed.delete(transcript);
  }

  #answerAsked(): void {
    this.#asked = Math.max(0, this.#asked - 1);
  }

  /** What was shown of it is told now, and what is left is of the others. */
  #endResponse(told: Usage | null): Usage | null {
    this.#responses = Math.max(0, this.#responses - 1);
    const untold = told === null && this.#responses === 0 ? this.shown : null;
    const audio = told?.parts?.audioOutput ?? 0;
    const text = (told?.output ?? 0) - audio;
    const isNoneLeft = this.#responses === 0;
    this.#seconds = isNoneLeft ? 0 : Math.max(0, this.#seconds - audio / tokensPerSecond);
    this.#weight = isNoneLeft ? 0 : Math.max(0, this.#weight - weightOfToken * text);
    return untold;
  }
}

/*
 * What a response has made by the deltas that have passed, for one whose `response.done` never comes
 * (https://platform.openai.com/docs/api-reference/realtime-server-events/response). Sound is base64 of one channel: of
 * 16 bits a sample for PCM, of 8 bits and 8 kHz for G.711.
 */

const delta = Buffer.from('"delta"');
const quote = 0x22;
const g711BytesPerSecond = 8000;
const bytesOfSample = 2;
const usualRate = 24_000;
/** An upstream that names another rate is not believed: the seconds would be as long or short as it likes. */
const lowestRate = 8000;
const highestRate = 48_000;
/** An event that tells how a response begins, or has ended, or of a transcript is shorter: it has no sound in it. */
const longestOfResponse = 256 * 1024;
/** A longer text is not looked at letter by letter. */
const longestRead = 64 * 1024;

/** What the sound of responses is taken for where nothing is known of its format. */
const usualBytesPerSecond = bytesOfSample * usualRate;

/** An event; null where it is too long, or none. */
function objectOf(event: Buffer): JsonObject | null {
  return event.length > longestOfResponse ? null : parseObject(event.toString('utf8'));
}

/** What an event tells of its response; null where it is too long, or tells of none. */
function responseOf(event: Buffer): JsonObject | null {
  return memberOf(objectOf(event), 'response');
}

/** @returns an empty text where it has none */
function responseId(response: JsonObject | null): string {
  return idOf(response?.id);
}

/** @returns an empty text for what is no id, or none that is kept */
function idOf(value: unknown): string {
  const id = textOf(value);
  return id.length > longestId ? '' : id;
}

/** Remembers an id; the one that has been remembered for longest gives way. */
function addToLast(ids: Set<string>, id: string): void {
  ids.add(id);
  const [oldest] = ids;
  if (ids.size > mostEnded && oldest !== undefined) ids.delete(oldest);
}

/** @param response as it begins, with the format of its sound @returns bytes of a second of it */
function audioBytesPerSecond(response: JsonObject | null): number {
  const format = memberOf(memberOf(memberOf(response, 'audio'), 'output'), 'format');
  switch (format?.type ?? response?.output_audio_format) {
    case 'audio/pcmu':
    case 'audio/pcma':
    case 'g711_ulaw':
    case 'g711_alaw':
      return g711BytesPerSecond;
    default: {
      const rate = numberOrNull(format?.rate) ?? usualRate;
      return bytesOfSample * (rate >= lowestRate && rate <= highestRate ? rate : usualRate);
    }
  }
}

function memberOf(object: JsonObject | null, name: string): JsonObject | null {
  const member = object?.[name];
  return isObject(member) ? member : null;
}

/** @returns bytes of sound in an event's `delta`; 0 where it has none */
function audioBytesOf(event: Buffer): number {
  const start = deltaStart(event);
  const end = start === -1 ? -1 : event.indexOf(quote, start);
  return end === -1 ? 0 : Math.floor(((end - start) * 3) / 4);
}

/** @returns the `textWeight` of an event's `delta`; 0 where it has none */
function textWeightOf(event: Buffer): number {
  const start = deltaStart(event);
  const end = start === -1 ? -1 : endOfString(event, start);
  if (end === -1) return 0;
  return end - start > longestRead ? end - start : rawTextWeight(event.toString('latin1', start, end));
}

/** Offset of the first byte of a delta, behind its quote, or -1 where it is no string. */
function deltaStart(event: Buffer): number {
  const at = event.indexOf(delta);
  const start = at === -1 ? -1 : afterColon(event, at + delta.length - 1);
  return start !== -1 && event[start] === quote ? start + 1 : -1;
}
