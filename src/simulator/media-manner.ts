import { chatManner } from './chat.js';
import type { Manner } from './reply.js';

/** A body that is no text: errors are worded as in the OpenAI family. */
export const binaryManner: Manner = {
  ...chatManner,
  errorEvent: () => chatManner.errorBody(500),
  contentEvent: (text) => text,
  eventsBeforeContent: 0,
};

/** Data of an event. */
export interface TypedEvent {
  readonly type: string;
  readonly [member: string]: unknown;
}

/** Text of an event as the OpenAI family streams media: its type is a member of the data, and the event's name. */
export function typedEvent(event: TypedEvent): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

/** A stream whose content comes in events of one type. */
export function eventManner(event: (text: string) => TypedEvent): Manner {
  return { ...chatManner, contentEvent: (text) => typedEvent(event(text)), eventsBeforeContent: 0 };
}
