import type { Test } from 'tap';
import { Arrivals } from './arrivals.js';
import { openClient, type SessionClient, type SessionOptions } from './realtime.js';

/** A server event, loosely typed for tests. */
// biome-ignore lint/suspicious/noExplicitAny: tests read events of every shape
export type Event = Record<string, any>;

/** The server events of a session, in order. */
export class EventLog {
  readonly #arrivals = new Arrivals<Event>();
  #asked = 0;

  get events(): readonly Event[] {
    return this.#arrivals.all;
  }

  push(event: Event): void {
    this.#arrivals.add(event);
  }

  /** Resolves with the next event of a type after the last one that was requested, and skips those before it. */
  async next(type: string): Promise<Event> {
    const event = await this.#arrivals.first((event, index) => index >= this.#asked && event.type === type);
    this.#asked = this.events.indexOf(event) + 1;
    return event;
  }

  /** Returns the events of one type. */
  all(type: string): readonly Event[] {
    return this.events.filter((event) => event.type === type);
  }

  /** Returns the types in order from the first event of one type on, with runs of one type once. */
  typesFrom(first: string): readonly string[] {
    const types = this.events
      .slice(this.events.findIndex(({ type }) => type === first))
      .map(({ type }) => type as string);
    return types.filter((type, index) => type !== types[index - 1]);
  }
}

/** A client that writes the protocol by hand. */
export interface EventClient extends Pick<SessionClient, 'socket' | 'closed'> {
  readonly log: EventLog;
  send(...events: readonly object[]): void;
}

/** Opens a session, and reads its events. */
export async function openEvents(t: Test, port: number, options: SessionOptions = {}): Promise<EventClient> {
  const { socket, closed, received } = await openClient(t, port, options);
  const log = new EventLog();
  // Earlier messages are in `received`, and later ones arrive here.
  for (const message of received) log.push(JSON.parse(message.toString()) as Event);
  socket.on('message', (data: Buffer) => log.push(JSON.parse(data.toString()) as Event));
  return {
    socket,
    closed,
    log,
    send: (...events) => {
      for (const event of events) socket.send(JSON.stringify(event));
    },
  };
}

export const respond = { type: 'response.create' };

/** Makes the event with a user's text. */
export function says(text: string): object {
  const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text }] };
  return { type: 'conversation.item.create', item };
}

/** Makes the settings of a session, in one of the two forms of the protocol. */
export function updates(isBeta: boolean, settings: object): object {
  return { type: 'session.update', session: isBeta ? settings : { type: 'realtime', ...settings } };
}

/** Makes the model write instead of speak. */
export function writes(isBeta: boolean, more: object = {}): object {
  return updates(isBeta, {
    ...(isBeta ? { modalities: ['text'] } : { output_modalities: ['text'] }),
    ...more,
  });
}

/** The order of a whole turn. What comes before and after the content is the same for all kinds. */
export function turnTypes(isBeta: boolean, content: readonly string[]): readonly string[] {
  const [added, done] = isBeta
    ? [['conversation.item.created'], []]
    : [['conversation.item.added'], ['conversation.item.done']];
  return [
    'response.created',
    'response.output_item.added',
    ...added,
    ...content,
    'response.output_item.done',
    ...done,
    'response.done',
    'rate_limits.updated',
  ];
}
