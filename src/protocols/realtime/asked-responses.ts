import { isObject, type JsonObject, objectOf, parseObject, textOrNull } from '../../wire/json.js';
import { textStart } from '../../wire/json-skip.js';
import { type ServerEvent, sessionEvents, speechStopped, timeoutTriggered } from './event-type.js';

/** This many requests are remembered one by one. Of any beyond, only the number is. */
const mostRemembered = 64;
/** Errors are shorter. */
const longestError = 64 * 1024;
/** Quiet milliseconds in which a server begins its response to a turn that it has ended. */
const longestOwnMs = 5000;

interface AskedResponse {
  /** Id of the client's event; null if it has none, undefined if its id is unknown. */
  readonly id: string | null | undefined;
  /** `#quietMs` at the time of the request. */
  since: number;
}

/**
 * Responses that a client has requested and the upstream has neither begun nor refused. What begins a response does not
 * name the request for it, so the oldest one is taken to be answered. An error may name the event that it is about
 * (https://platform.openai.com/docs/api-reference/realtime-server-events/error), if the client has given an id to it.
 */
export class AskedResponses {
  /** The oldest first. */
  readonly #asked: AskedResponse[] = [];
  /** Requests later than those, and `#quietMs` at the time of the last one. */
  #others = 0;
  #othersSince = 0;
  /** Milliseconds of the session in which no response was in progress. */
  #quietMs = 0;
  /** Whether turns that the server ends begin a response, also while another one is in progress. */
  #isAutomatic = false;
  #interrupts = false;
  /** `#quietMs` when the server ended a turn to which it begins the next response by itself; null if it does not. */
  #ownSince: number | null = null;
  /** Whether the upstream's errors have the member that names an event. */
  #namesEvents = false;

  get count(): number {
    return this.#asked.length + this.#others;
  }

  /** Whether an error may be about a response that has not begun. */
  get mayBeRefused(): boolean {
    return this.count > 0 || this.#ownSince !== null;
  }

  /** @param id that the client has given to its event; null for none, undefined for one that is unknown */
  add(id: string | null | undefined): void {
    if (this.#asked.length === mostRemembered) {
      this.#others++;
      this.#othersSince = this.#quietMs;
    } else this.#asked.push({ id, since: this.#quietMs });
  }

  /**
   * Records a server event about a session or its input. Called in the order of the events.
   * @param isResponding whether a response is in progress
   */
  note(event: ServerEvent, isResponding: boolean): void {
    if (event.type === speechStopped || event.type === timeoutTriggered) {
      const beginsOwn = this.#isAutomatic && (this.#interrupts || !isResponding);
      this.#ownSince = beginsOwn ? this.#quietMs : null;
    } else if (sessionEvents.includes(event.type)) {
      const session = objectOf(event.object?.session);
      const detection = turnDetectionIn(session);
      const isTranscription = session.type === 'transcription' || event.type.startsWith('transcription');
      // Some servers repeat only what has changed.
      if (detection === undefined && !isTranscription) return;
      const { type, create_response, interrupt_response } = objectOf(detection);
      this.#isAutomatic =
        !isTranscription && isObject(detection) && type !== 'none' && create_response !== false;
      this.#interrupts = interrupt_response !== false;
      if (!this.#isAutomatic) this.#ownSince = null;
    }
  }

  /**
   * Records that the upstream has begun a response. If it answers a later request than the oldest, because that was ignored,
   * the number of those left is still wrong by one: the oldest of them has then waited as long as the one that it replaces.
   */
  begin(): void {
    const [oldest] = this.#asked;
    if (this.#ownSince === null && oldest !== undefined) {
      this.#remove(0);
      const [next] = this.#asked;
      if (next !== undefined) next.since = Math.min(next.since, oldest.since);
    }
    this.#ownSince = null;
  }

  /**
   * Records an error of the upstream. One that names the event of a request refuses that. One that names another event may
   * still be about a request whose id is unknown; if there is none, it is about something else. One that names no event is
   * taken to be about the server's own response that is to begin, or else about a request: one without an id if the
   * upstream names events, since it would have named another.
   */
  refuse(error: Buffer): void {
    const told = toldId(error);
    if (told !== undefined) this.#namesEvents = true;
    const id = told ?? null;
    // Also if it is about a request: the server's own response then answers that, and the number is right again.
    if (id === null && this.#ownSince !== null) {
      this.#ownSince = null;
      return;
    }
    const named = this.#indexOf(id);
    if (named !== -1) this.#remove(named);
    else if (id === null) {
      if (!this.#namesEvents) this.#remove(0);
    } else if (this.#indexOf(undefined) !== -1) this.#remove(this.#indexOf(undefined));
    else if (this.#others > 0) this.#others--;
  }

  #indexOf(id: string | null | undefined): number {
    return this.#asked.findIndex((asked) => asked.id === id);
  }

  /**
   * Forgets requests that the upstream ignores. It may let a request wait for the responses before it, so only time in which
   * none is in progress counts.
   * @param quietMs such milliseconds since the last call
   * @param longestMs how many of them a request may wait
   */
  pass(quietMs: number, longestMs: number): void {
    this.#quietMs += quietMs;
    if (this.#ownSince !== null && this.#quietMs - this.#ownSince > longestOwnMs) this.#ownSince = null;
    while (this.#quietMs - (this.#asked[0]?.since ?? this.#quietMs) > longestMs) this.#remove(0);
  }

  #remove(index: number): void {
    this.#asked.splice(index, 1);
    if (this.#others === 0) return;
    this.#others--;
    this.#asked.push({ id: undefined, since: this.#othersSince });
  }
}

/** @returns undefined if the session does not say how the turns of its client end */
function turnDetectionIn({ audio, turn_detection: older }: JsonObject): unknown {
  const { turn_detection: newer } = objectOf(objectOf(audio).input);
  return newer === undefined ? older : newer;
}

/**
 * @returns the id of the client's event that an error is about; null if it names none, undefined if it has no member for that, or
 * repeats its own id there
 */
function toldId(event: Buffer): string | null | undefined {
  if (event.length > longestError) return undefined;
  const parsed = parseObject(event.toString('utf8', textStart(event)));
  const error = parsed?.error;
  if (!isObject(error) || error.event_id === undefined) return undefined;
  const id = textOrNull(error.event_id);
  return id !== null && id === parsed?.event_id ? undefined : id;
}
