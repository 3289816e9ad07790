import { isObject, textOrNull } from '../../wire/json.js';
import { committed, type ServerEvent, sessionEvents, transcribed } from './event-type.js';

/** Most transcripts of a session that are expected at the same time. */
const mostItems = 256;
/** Longer names and ids are not remembered. */
const longestName = 256;

/**
 * Which models transcribe the input of a session, as its upstream confirms them
 * (https://platform.openai.com/docs/api-reference/realtime-server-events). Speech is transcribed by the model of the moment
 * at which it was committed, whatever the session names before its transcript arrives.
 */
export class Transcribers {
  #name: string | null = null;
  /** By the ids of items whose transcripts have not arrived. */
  readonly #ofItems = new Map<string, string | null>();

  /** Records a server event. Called in the order of the events. */
  note(event: ServerEvent): void {
    if (event.type === committed) {
      const id = shortOrNull(event.object?.item_id);
      if (id !== null) this.#await(id);
    } else if (sessionEvents.includes(event.type)) {
      const transcription = transcriptionIn(event.object?.session);
      // Some servers repeat only what has changed.
      if (transcription !== undefined)
        this.#name = isObject(transcription) ? shortOrNull(transcription.model) : null;
    }
  }

  /**
   * @param event of the server
   * @returns the upstream's name of the model that has made the transcript in it; null for any other event, and if it is
   * unknown
   */
  of(event: ServerEvent): string | null {
    if (event.type !== transcribed) return null;
    const id = shortOrNull(event.object?.item_id);
    const known = id === null ? undefined : this.#ofItems.get(id);
    return known === undefined ? this.#name : known;
  }

  #await(id: string): void {
    this.#ofItems.delete(id);
    this.#ofItems.set(id, this.#name);
    const [oldest] = this.#ofItems.keys();
    if (this.#ofItems.size > mostItems && oldest !== undefined) this.#ofItems.delete(oldest);
  }
}

/** @returns undefined if the session does not say what transcribes its input */
function transcriptionIn(session: unknown): unknown {
  if (!isObject(session)) return undefined;
  const { audio, input_audio_transcription: older } = session;
  const input = isObject(audio) ? audio.input : null;
  return isObject(input) && input.transcription !== undefined ? input.transcription : older;
}

function shortOrNull(value: unknown): string | null {
  const text = textOrNull(value);
  return text !== null && text.length <= longestName ? text : null;
}
