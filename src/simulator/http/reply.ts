import type { Directive } from '../faults/directives.js';
import type { RequestError } from './request-error.js';

/** A step on the connection while an answer is sent. */
export type Step =
  /** Bytes of the body; `tokens` counts toward the token rate. */
  | { readonly kind: 'data'; readonly bytes: string | Buffer; readonly tokens: number }
  | { readonly kind: 'wait'; readonly ms: number }
  /** Bytes written directly to the socket, without HTTP's framing. */
  | { readonly kind: 'raw'; readonly bytes: string }
  /** RST. */
  | { readonly kind: 'reset' }
  /** FIN, without an end of the body. */
  | { readonly kind: 'disconnect' }
  /** Nothing more, until the client disconnects. */
  | { readonly kind: 'hang' }
  /** The next request on this connection is reset before it is read. */
  | { readonly kind: 'spoil' };

/** The parts of a protocol's answers that faults need. */
export interface AnswerFormat {
  /** JSON text of an error body. */
  errorBody(error: RequestError): string;
  /**
   * Text of an error inside a stream.
   * @param form selects one if the protocol has several; an empty string for the usual one
   */
  errorEvent(form: string): string;
  /** Text of one event with this content. */
  contentEvent(text: string): string;
  /** Number of events in a stream before content may follow. */
  readonly eventsBeforeContent: number;
  /** The protocol whose answers are foreign here. */
  readonly foreign: 'chat' | 'messages';
}

/** An answer, ready to be sent; a fault is a function from one reply to another. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Value of `content-length`; null for a chunked body. */
  readonly length: number | null;
  /** False for a body that ends with the connection and has no framing of its own. */
  readonly framed: boolean;
  readonly stream: boolean;
  /** Steps before the head, or in its place if they end the connection. */
  readonly before: readonly Step[];
  readonly steps: Iterable<Step> | AsyncIterable<Step>;
  /** Steps after the end of the body. */
  readonly after: readonly Step[];
  /** Overrides the simulator's settings; null to use these. */
  readonly latencyMs: number | null;
  readonly tokensPerSecond: number | null;
  readonly answerFormat: AnswerFormat;
  readonly directives: readonly Directive[];
  /** Side effect of the request; skipped if a directive turns the answer into an error. */
  readonly effect?: () => void;
}

/** A request as received. */
export interface SimulatorRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** Alternating names and values, as received. */
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  /** From the header `x-simulator-fault`. */
  readonly directives: readonly Directive[];
}

/** One line of the route table. */
export interface Route {
  readonly method: string;
  /** A path, or a pattern of whole paths. */
  readonly path: string | RegExp;
  handle(request: SimulatorRequest): Reply | Promise<Reply>;
}

interface BodyReplyParts {
  readonly status: number;
  readonly body: string | Buffer;
  readonly answerFormat: AnswerFormat;
  readonly headers?: Readonly<Record<string, string>>;
  readonly directives?: readonly Directive[];
}

/** An answer with one body; JSON unless `headers` names another content type. */
export function bodyReply(parts: BodyReplyParts): Reply {
  const body = Buffer.from(parts.body);
  return {
    status: parts.status,
    headers: { 'content-type': 'application/json', ...parts.headers },
    length: body.length,
    framed: true,
    stream: false,
    before: [],
    steps: [{ kind: 'data', bytes: body, tokens: 0 }],
    after: [],
    latencyMs: null,
    tokensPerSecond: null,
    answerFormat: parts.answerFormat,
    directives: parts.directives ?? [],
  };
}

interface StreamReplyParts {
  /** One step per event, generated while they are sent. */
  readonly events: Iterable<Step>;
  readonly answerFormat: AnswerFormat;
  readonly headers?: Readonly<Record<string, string>>;
  readonly directives: readonly Directive[];
}

/** An answer of server-sent events. */
export function streamReply(parts: StreamReplyParts): Reply {
  return {
    ...bodyReply({ status: 200, body: '', answerFormat: parts.answerFormat, directives: parts.directives }),
    headers: {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      ...parts.headers,
    },
    length: null,
    stream: true,
    steps: parts.events,
  };
}
