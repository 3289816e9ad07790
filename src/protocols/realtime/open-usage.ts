/** An event's type stands in its first bytes, before everything that may be long. */
const typeWithin = 256;
const begun = Buffer.from('"response.created"');
const done = Buffer.from('"response.done"');
const transcribing = Buffer.from('"conversation.item.input_audio_transcription.delta"');
const transcribed = Buffer.from('"conversation.item.input_audio_transcription.completed"');
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
    const begin = event.length > typeWithin ? event.subarray(0, typeWithin) : event;
    if (begin.includes(begun)) this.#responses++;
    else if (begin.includes(done)) this.#responses = Math.max(0, this.#responses - 1);
    else if (begin.includes(transcribing)) this.#isTranscribing = true;
    else if (this.#isTranscribing && (begin.includes(transcribed) || begin.includes(untranscribed)))
      this.#isTranscribing = false;
  }
}
