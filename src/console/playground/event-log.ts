/** An event of a stream, or a whole body, as received. */
export interface LoggedEvent {
  /** The number of events before it. */
  readonly index: number;
  /** Milliseconds since the request was sent. */
  readonly atMs: number;
  /** Empty if the protocol has no event names. */
  readonly name: string;
  readonly data: string;
}

/** The last events of an answer: bounded in number and in characters, whatever the answer is. */
export interface EventLog {
  events: LoggedEvent[];
  /** Number of all events received. */
  count: number;
  characters: number;
}

const maxEvents = 2000;
const maxCharacters = 1_048_576;

export function emptyLog(): EventLog {
  return { events: [], count: 0, characters: 0 };
}

/** Adds an event, and drops the oldest ones beyond the bounds. An event that exceeds them alone is truncated. */
export function logEvent(log: EventLog, event: Omit<LoggedEvent, 'index'>): void {
  const data = event.data.slice(0, maxCharacters);
  log.events.push({ ...event, data, index: log.count });
  log.count += 1;
  log.characters += data.length;
  let dropped = 0;
  while (log.events.length - dropped > maxEvents || log.characters > maxCharacters) {
    log.characters -= log.events[dropped]?.data.length ?? 0;
    dropped += 1;
  }
  if (dropped > 0) log.events.splice(0, dropped);
}
