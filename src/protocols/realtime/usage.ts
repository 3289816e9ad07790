import {
  estimatedUsage,
  heardSeconds,
  tokensOf,
  weightOfToken,
  withSound,
} from '../../conversation/estimate-usage.js';
import { noParts, type Usage, withCharges } from '../../conversation/usage.js';
import { QUOTE } from '../../wire/bytes.js';
import { isObject, type JsonObject, listOf, numberOrNull, textOf } from '../../wire/json.js';
import { afterColon, endOfString } from '../../wire/json-skip.js';
import { rawTextWeight, textWeight } from '../../wire/text-weight.js';
import { createUsageReader, secondsOfUsage, tokenNames } from '../openai-shared/usage.js';
import { AskedResponses } from './asked-responses.js';
import { responseDone, type ServerEvent, transcribed, typeBytes, typeOfEvent } from './event-type.js';

const reader = createUsageReader(tokenNames);
/** The usage is a member of a member of the event. Metadata, which may contain anything, is nested deeper. */
const levels = 2;

/**
 * @returns the usage that a server event reports for a response, or for a transcript of the client's speech; null for
 * every other event, and if it is counted in seconds
 */
export function usageOfEvent({ type, bytes }: ServerEvent): Usage | null {
  return type === responseDone || type === transcribed ? reader.lastUsageWithin(bytes, levels) : null;
}

/** @returns the seconds of audio that a server event reports to have been transcribed, or 0 */
export function secondsOfEvent(event: ServerEvent): number {
  return event.type === transcribed ? secondsOfUsage(event.object?.usage) : 0;
}

/** Estimates the seconds of audio of a transcript that reports none; 0 for any other event. */
export function expectedSeconds(event: ServerEvent, usage: Usage | null): number {
  if (event.type !== transcribed) return 0;
  return heardSeconds(usage?.parts?.audioInput ?? 0, textOf(objectOf(event)?.transcript));
}

/** Estimates the tokens of a transcript that reports so many seconds of audio. */
export function expectedTokens(event: ServerEvent, seconds: number): Usage {
  return withSound(writtenUsage(event) ?? estimatedUsage(0, 0), 'transcript', seconds);
}

/**
 * Estimates the output of a response or transcript by the words in the event that ends it. Audio counts as its transcript.
 * @returns null for none
 */
function writtenUsage(event: ServerEvent): Usage | null {
  const ended = objectOf(event);
  let weight = textWeight(textOf(ended?.transcript));
  for (const item of listOf(memberOf(ended, 'response')?.output)) {
    if (!isObject(item)) continue;
    weight += textWeight(textOf(item.arguments));
    for (const part of listOf(item.content))
      if (isObject(part)) weight += textWeight(textOf(part.text)) + textWeight(textOf(part.transcript));
  }
  return weight === 0 ? null : estimatedUsage(0, tokensOf(weight));
}

const begun = 'response.created';
const refused = 'error';
const ofResponse = Buffer.from('"response.');
const anyDelta = Buffer.from('.delta"');
const audioDelta = Buffer.from('audio.delta"');
const transcribing = 'conversation.item.input_audio_transcription.delta';
const untranscribed = 'conversation.item.input_audio_transcription.failed';
/** Output audio: one token per 50 ms (https://platform.openai.com/docs/guides/realtime-costs). */
const tokensPerSecond = 20;

/** Types of the event for a new item: the older name, and the one since 2025. */
const itemsBegun: readonly string[] = ['conversation.item.created', 'conversation.item.added'];

/** A response, or a transcript, that has ended is reported again soon, if at all. This many are remembered. */
const mostEnded = 64;
/** Longer ids are not remembered. */
const longestId = 256;

/**
 * Work of an upstream that was requested or has begun, and whose usage has not been reported: responses and
 * transcripts.
 */
export class OpenUsage {
  #responses = 0;
  readonly #asked = new AskedResponses();
  /** Time of the last `forgetIgnored`; 0 before the first. */
  #passedAt = 0;
  /** Milliseconds since the last delta of a response whose beginning was not reported; null if none is in progress. */
  #silentMs: number | null = null;
  #isTranscribing = false;
  #bytesPerSecond = usualBytesPerSecond;
  /** What deltas have shown of the responses in flight: seconds of audio, and text by `textWeight`. */
  #seconds = 0;
  #weight = 0;
  /** Ids of responses in flight, and of those that ended last. */
  readonly #begun = new Set<string>();
  readonly #ended = new Set<string>();
  /** The last reported transcripts: a content index, a blank and the id of an item each. */
  readonly #transcribed = new Set<string>();

  get isOpen(): boolean {
    return this.mayMakeResponse || this.#isTranscribing;
  }

  /** Responses that were requested or have begun, and have not ended. */
  get inFlight(): number {
    return this.#responses + this.#asked.count;
  }

  /** Whether responses are in flight or requested, so that the upstream can be told to end them. */
  get mayMakeResponse(): boolean {
    return this.inFlight > 0;
  }

  /** Whether responses are in flight. */
  get hasResponse(): boolean {
    return this.#responses > 0;
  }

  /** Estimated output that the responses in flight have shown so far. Null for none. */
  get shown(): Usage | null {
    const audioOutput = Math.ceil(this.#seconds * tokensPerSecond);
    const output = audioOutput + tokensOf(this.#weight);
    if (output === 0) return null;
    const usage = { input: 0, output, cached: 0, cacheWritten: 0, reasoning: 0 };
    return withCharges(usage, { parts: { ...noParts, audioOutput } });
  }

  /**
   * Records a client's event that requests a response: the upstream may bill one that it has not begun yet.
   * @param id that the client has given to the event; null for none, undefined for one that is unknown
   */
  ask(id: string | null | undefined): void {
    this.#asked.add(id);
  }

  /**
   * Forgets requested responses that the upstream has neither begun nor refused in time, although none was in progress.
   * Deltas show that one is in progress where only its end is reported. Called from time to time.
   * @param now milliseconds of any clock
   * @param longestMs how long it may let a request wait
   * @param isRead whether the upstream is being read
   */
  forgetIgnored(now: number, longestMs: number, isRead: boolean): void {
    const passedMs = this.#passedAt > 0 && isRead && !this.hasResponse ? now - this.#passedAt : 0;
    this.#passedAt = now;
    if (this.#silentMs === null) this.#asked.pass(passedMs, longestMs);
    else {
      this.#silentMs += passedMs;
      if (this.#silentMs > longestMs) this.#silentMs = null;
    }
  }

  /**
   * Returns whether a server event reports a response or transcript again that has already ended. If its response or
   * item has begun anew since then, it does not: servers that use the same id for all of them report when each begins.
   */
  tellsAgain(event: ServerEvent): boolean {
    switch (event.type) {
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
   * Records a server event that may report usage. Called in the order of the events.
   * @param reported the usage that it reports
   * @param isUnreported whether a response or transcript that ends has no usage that can be
   * @returns the estimate for a response or transcript that ended without a usage, or null. While other responses are in
   * flight, what was shown of it is left to the last of them
   */
  note(event: ServerEvent, reported: Usage | null, isUnreported: boolean): Usage | null {
    switch (event.type) {
      case begun:
        this.#begin(responseOf(event));
        break;
      case responseDone:
        return (
          this.#endResponse(reported) ?? (isUnreported && !this.hasResponse ? writtenUsage(event) : null)
        );
      case transcribing:
        this.#isTranscribing = true;
        break;
      case transcribed:
      case untranscribed:
        this.#isTranscribing = false;
        return isUnreported ? writtenUsage(event) : null;
      default:
        if (itemsBegun.includes(event.type)) this.#beginItem(event);
        else this.#asked.note(event, this.hasResponse);
        this.noteDelta(event.bytes);
    }
    return null;
  }

  /** Records what any other server event shows of a response. */
  noteDelta(event: Buffer): void {
    if (this.#asked.mayBeRefused && typeOfEvent(event) === refused) this.#asked.refuse(event);
    if (this.inFlight === 0) return;
    const type = typeBytes(event);
    if (!type.includes(anyDelta) || !type.includes(ofResponse)) return;
    if (this.#responses === 0) this.#silentMs = 0;
    else if (type.includes(audioDelta)) this.#seconds += audioBytesOf(event) / this.#bytesPerSecond;
    else this.#weight += textWeightOf(event);
  }

  #begin(response: JsonObject | null): void {
    this.#responses++;
    this.#silentMs = null;
    this.#asked.begin();
    this.#bytesPerSecond = audioBytesPerSecond(response);
    const id = responseId(response);
    this.#ended.delete(id);
    if (id !== '' && this.#begun.size < mostEnded) this.#begun.add(id);
  }

  #beginItem(event: ServerEvent): void {
    if (this.#transcribed.size === 0) return;
    const id = idOf(memberOf(objectOf(event), 'item')?.id);
    for (const transcript of this.#transcribed)
      if (transcript.endsWith(` ${id}`)) this.#transcribed.delete(transcript);
  }

  /** What was shown is now reported. What remains belongs to the other responses. */
  #endResponse(reported: Usage | null): Usage | null {
    if (this.#responses > 0) this.#responses--;
    // Some servers report only the end of a response.
    else this.#asked.begin();
    this.#silentMs = null;
    const unreported = reported === null && this.#responses === 0 ? this.shown : null;
    const audio = reported?.parts?.audioOutput ?? 0;
    const text = (reported?.output ?? 0) - audio;
    const isNoneLeft = this.#responses === 0;
    this.#seconds = isNoneLeft ? 0 : Math.max(0, this.#seconds - audio / tokensPerSecond);
    this.#weight = isNoneLeft ? 0 : Math.max(0, this.#weight - weightOfToken * text);
    return unreported;
  }
}

/*
 * Estimates the output of a response from the deltas that have passed, in case its `response.done` never arrives
 * (https://platform.openai.com/docs/api-reference/realtime-server-events/response). Audio is base64 of one channel: 16
 * bits per sample for PCM, 8 bits at 8 kHz for G.711.
 */

const delta = Buffer.from('"delta"');
const g711BytesPerSecond = 8000;
const bytesOfSample = 2;
const usualRate = 24_000;
/** Other rates are ignored: an upstream could otherwise make the seconds arbitrarily long or short. */
const lowestRate = 8000;
const highestRate = 48_000;
/** Events about the beginning or end of a response, or about a transcript, are shorter: they contain no audio. */
const longestOfResponse = 256 * 1024;
/** Longer texts are not weighed by character. */
const longestRead = 64 * 1024;

/** Bytes per second of audio in an unknown format. */
const usualBytesPerSecond = bytesOfSample * usualRate;

/** Returns an event's JSON. Null if it is too long or not an object. */
function objectOf(event: ServerEvent): JsonObject | null {
  return event.bytes.length > longestOfResponse ? null : event.object;
}

/** Returns the response in an event. Null if the event is too long or has none. */
function responseOf(event: ServerEvent): JsonObject | null {
  return memberOf(objectOf(event), 'response');
}

/** @returns an empty string if there is none */
function responseId(response: JsonObject | null): string {
  return idOf(response?.id);
}

/** @returns an empty string for anything but an id that can be remembered */
function idOf(value: unknown): string {
  const id = textOf(value);
  return id.length > longestId ? '' : id;
}

/** Remembers an id and forgets the oldest one. */
function addToLast(ids: Set<string>, id: string): void {
  ids.add(id);
  const [oldest] = ids;
  if (ids.size > mostEnded && oldest !== undefined) ids.delete(oldest);
}

/** @param response the response at its beginning, with its audio format @returns bytes per second of its audio */
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

/** @returns bytes of audio in an event's `delta`; 0 if it has none */
function audioBytesOf(event: Buffer): number {
  const start = deltaStart(event);
  const end = start === -1 ? -1 : event.indexOf(QUOTE, start);
  return end === -1 ? 0 : Math.floor(((end - start) * 3) / 4);
}

/** @returns the `textWeight` of an event's `delta`; 0 if it has none */
function textWeightOf(event: Buffer): number {
  const start = deltaStart(event);
  const end = start === -1 ? -1 : endOfString(event, start);
  if (end === -1) return 0;
  return end - start > longestRead ? end - start : rawTextWeight(event.toString('latin1', start, end));
}

/** Returns the offset of the first byte of a delta, after its quote, or -1 if it is not a string. */
function deltaStart(event: Buffer): number {
  const at = event.indexOf(delta);
  const start = at === -1 ? -1 : afterColon(event, at + delta.length - 1);
  return start !== -1 && event[start] === QUOTE ? start + 1 : -1;
}
