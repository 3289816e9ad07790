import { responseDone, transcribed, typeBytes } from './event-type.js';

const begun = Buffer.from('"response.created"');
const transcribing = Buffer.from('"conversation.item.input_audio_transcription.delta"');
const untranscribed = Buffer.from('"conversation.item.input_audio_transcription.failed"');

/** Whether an upstream has begun what it has not told the usage of: a response, or a transcript of what was said. */
export class OpenUsage {
  #responses = 0;
  #isTranscribing = false;

  get isOpen(): boolean {
    return this.#responses > 0 || this.#isTranscribing;
  }

  /** Responses are under way, and the upstream can be asked to end them. */
  get hasResponse(): boolean {
    return this.#responses > 0;
  }

  /** Takes note of a server event, in their order. */
  note(event: Buffer): void {
    const type = typeBytes(event);
    if (type.includes(begun)) this.#responses++;
    else if (type.includes(responseDone)) this.#responses = Math.max(0, this.#responses - 1);
    else if (type.includes(transcribing)) this.#isTranscribing = true;
    else if (this.#isTranscribing && (type.includes(transcribed) || type.includes(untranscribed)))
      this.#isTranscribing = false;
  }
}
