/** An event of a stream, or a whole body, as it came. */
export interface LoggedEvent {
  /** How many came before it. */
  readonly index: number;
  /** Milliseconds since the request was sent. */
  readonly atMs: number;
  /** Empty where the protocol names none. */
  readonly name: string;
  readonly data: string;
}

/** The last events of an answer: bounded in number and in characters, whatever the answer is. */
export interface EventLog {
  events: LoggedEvent[];
  /** Of all that came. */
  count: number;
  characters: number;
}

const mostEvents = 2000;
const mostCharacters = 1_048_576;

export function emptyLog(): EventLog {
  return { events: [], count: 0, characters: 0 };
}

/** Adds an event, and drops the oldest ones as far as the bounds want it; one that is too long alone is cut. */
export function logEvent(log: EventLog, event: Omit<LoggedEvent, 'index'>): void {
  const data = event.data.slice(0, mostCharacters);
  log.events.push({ ...event, data, index: log.count });
  log.count += 1;
  log.characters += data.length;
  let dropped = 0;
  while (log.events.length - dropped > mostEvents || log.characters > mostCharacters) {
    log.characters -= log.events[dropped]?.data.length ?? 0;
    dropped += 1;
  }
  if (dropped > 0) log.events.splice(0, dropped);
}
