import { askedForStatus, type Manner } from './reply.js';

/** `error.status` by HTTP status. */
const names: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  500: 'INTERNAL',
  501: 'UNIMPLEMENTED',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
};

/** How the objects of a stream are set apart. */
export interface Framing {
  readonly contentType: string;
  frame(body: object): string;
  /** What stands behind the last one. */
  readonly end: string;
}

/** One server-sent event an object. */
export const eventFraming: Framing = {
  contentType: 'text/event-stream; charset=utf-8',
  frame: (body) => `data: ${JSON.stringify(body)}\n\n`,
  end: '',
};

/** One JSON array of all objects: what a stream is that was not asked for as events. */
export function arrayFraming(): Framing {
  let opened = false;
  return {
    contentType: 'application/json',
    frame(body) {
      const lead = opened ? ',\n' : '[';
      opened = true;
      return lead + JSON.stringify(body);
    },
    end: ']',
  };
}

/** An object that adds to the answer of one candidate. */
export function contentChunk(parts: readonly object[], index: number): object {
  return { content: { role: 'model', parts }, index };
}

/**
 * How generateContent words errors and events.
 * @param framing of the stream that the request asks for, or null where it asks for none
 */
export function generateContentManner(framing: Framing | null): Manner {
  const error = (status: number, message: string): object => ({
    error: {
      code: status,
      message,
      status: names[status] ?? (status < 500 ? 'FAILED_PRECONDITION' : 'INTERNAL'),
    },
  });
  const inArray = framing !== null && framing !== eventFraming;
  return {
    errorBody: (status, message) => {
      const body = JSON.stringify(error(status, message ?? askedForStatus(status)));
      return inArray ? `[${body}]` : body;
    },
    errorEvent: () => {
      const { frame, end } = framing ?? eventFraming;
      return frame(error(500, 'The simulator was asked for an error in the stream.')) + end;
    },
    contentEvent: (text) => {
      const chunk = {
        candidates: [contentChunk([{ text }], 0)],
        modelVersion: 'sim-text',
        responseId: 'simulated',
      };
      return inArray ? `,\n${JSON.stringify(chunk)}` : eventFraming.frame(chunk);
    },
    eventsBeforeContent: 1,
    foreign: 'messages',
  };
}
