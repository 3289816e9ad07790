import { tokensOf } from '../../conversation/estimate-usage.js';
import { noParts, type Usage, withCharges } from '../../conversation/usage.js';
import { audioBytesOf, audioBytesPerSecond, textWeightOf, usualBytesPerSecond } from './deltas.js';
import { responseDone, transcribed, typeBytes, typeOfEvent } from './event-type.js';

const begun = 'response.created';
const ofResponse = Buffer.from('"response.');
const anyDelta = Buffer.from('.delta"');
const audioDelta = Buffer.from('audio.delta"');
const transcribing = 'conversation.item.input_audio_transcription.delta';
const untranscribed = 'conversation.item.input_audio_transcription.failed';
/** Of sound that a model makes: one for 50 ms (https://platform.openai.com/docs/guides/realtime-costs). */
const tokensPerSecond = 20;
const weightOfToken = 4;

/** What an upstream has begun and not told the usage of: responses, or a transcript of what was said. */
export class OpenUsage {
  #responses = 0;
  #isTranscribing = false;
  #bytesPerSecond = usualBytesPerSecond;
  /** What deltas have shown of the responses under way: seconds of sound, and text by `textWeight`. */
  #seconds = 0;
  #weight = 0;

  get isOpen(): boolean {
    return this.#responses > 0 || this.#isTranscribing;
  }

  /** Responses are under way, and the upstream can be asked to end them. */
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

  /** Takes note of a server event that may tell of usage, in their order. @param told the usage that it tells of */
  note(event: Buffer, told: Usage | null): void {
    switch (typeOfEvent(event)) {
      case begun:
        this.#responses++;
        this.#bytesPerSecond = audioBytesPerSecond(event);
        break;
      case responseDone:
        this.#endResponse(told);
        break;
      case transcribing:
        this.#isTranscribing = true;
        break;
      case transcribed:
      case untranscribed:
        this.#isTranscribing = false;
        break;
      default:
        this.noteDelta(event);
    }
  }

  /** Takes note of any other server event, for what it shows of a response. */
  noteDelta(event: Buffer): void {
    if (this.#responses === 0) return;
    const type = typeBytes(event);
    if (!type.includes(anyDelta) || !type.includes(ofResponse)) return;
    if (type.includes(audioDelta)) this.#seconds += audioBytesOf(event) / this.#bytesPerSecond;
    else this.#weight += textWeightOf(event);
  }

  /** What was shown of it is told now, and what is left is of the others. */
  #endResponse(told: Usage | null): void {
    this.#responses = Math.max(0, this.#responses - 1);
    const audio = told?.parts?.audioOutput ?? 0;
    const text = (told?.output ?? 0) - audio;
    const isNoneLeft = this.#responses === 0;
    this.#seconds = isNoneLeft ? 0 : Math.max(0, this.#seconds - audio / tokensPerSecond);
    this.#weight = isNoneLeft ? 0 : Math.max(0, this.#weight - weightOfToken * text);
  }
}
