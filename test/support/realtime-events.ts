import type { Test } from 'tap';
import { Arrivals } from './arrivals.js';
import { openClient, type SessionClient, type SessionOptions } from './realtime.js';

/** A server event, as loose as a test wants it. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into events of every shape
export type Event = Record<string, any>;

/** The server events of a session, in their order. */
export class EventLog {
  readonly #arrivals = new Arrivals<Event>();
  #asked = 0;

  get events(): readonly Event[] {
    return this.#arrivals.all;
  }

  push(event: Event): void {
    this.#arrivals.add(event);
  }

  /** The next event of a type that has not been asked for; those before it are passed over. */
  async next(type: string): Promise<Event> {
    const event = await this.#arrivals.first((event, index) => index >= this.#asked && event.type === type);
    this.#asked = this.events.indexOf(event) + 1;
    return event;
  }

  /** The events of one type. */
  all(type: string): readonly Event[] {
    return this.events.filter((event) => event.type === type);
  }

  /** Types in their order from the first event of one type on, runs of one type once. */
  typesFrom(first: string): readonly string[] {
    const types = this.events
      .slice(this.events.findIndex(({ type }) => type === first))
      .map(({ type }) => type as string);
    return types.filter((type, index) => type !== types[index - 1]);
  }
}

/** A client that speaks the protocol by hand. */
export interface EventClient extends Pick<SessionClient, 'socket' | 'closed'> {
  readonly log: EventLog;
  send(...events: readonly object[]): void;
}

/** Opens a session, and reads its events. */
export async function openEvents(t: Test, port: number, options: SessionOptions = {}): Promise<EventClient> {
  const { socket, closed, received } = await openClient(t, port, options);
  const log = new EventLog();
  // What came before this line is in `received`, and what comes after it here.
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

/** A user's text as an event. */
export function says(text: string): object {
  const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text }] };
  return { type: 'conversation.item.create', item };
}

/** Settings of a session, in one of the two forms of the protocol. */
export function updates(isBeta: boolean, settings: object): object {
  return { type: 'session.update', session: isBeta ? settings : { type: 'realtime', ...settings } };
}

/** Has the model write instead of speak. */
export function writes(isBeta: boolean, more: object = {}): object {
  return updates(isBeta, {
    ...(isBeta ? { modalities: ['text'] } : { output_modalities: ['text'] }),
    ...more,
  });
}

/** The order of a whole turn; what stands before and after the content is the same for all of them. */
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
