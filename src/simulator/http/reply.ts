import type { Directive } from '../faults/directives.js';
import type { RequestError } from './request-error.js';

/** One thing to do on the connection while an answer is given. */
export type Step =
  /** Bytes of the body; `tokens` is what they cost at the token rate. */
  | { readonly kind: 'data'; readonly bytes: string | Buffer; readonly tokens: number }
  | { readonly kind: 'wait'; readonly ms: number }
  /** Bytes written past HTTP's framing, as they are. */
  | { readonly kind: 'raw'; readonly bytes: string }
  /** RST. */
  | { readonly kind: 'reset' }
  /** FIN, without an end of the body. */
  | { readonly kind: 'disconnect' }
  /** Nothing more, until the other side leaves. */
  | { readonly kind: 'hang' }
  /** The next request on this connection is reset before it is read. */
  | { readonly kind: 'spoil' };

/** How a protocol words what the faults need. */
export interface AnswerFormat {
  /** JSON text of an error body. */
  errorBody(error: RequestError): string;
  /**
   * Text of an error inside a stream.
   * @param form which one, where the protocol has several; an empty string for the usual one
   */
  errorEvent(form: string): string;
  /** Text of one event that carries so much content. */
  contentEvent(text: string): string;
  /** Events that open a stream before content may come. */
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
  /** Done before the head, in its place if they end the connection. */
  readonly before: readonly Step[];
  readonly steps: Iterable<Step> | AsyncIterable<Step>;
  /** Done once the body has ended. */
  readonly after: readonly Step[];
  /** Instead of the simulator's own settings, or null. */
  readonly latencyMs: number | null;
  readonly tokensPerSecond: number | null;
  readonly answerFormat: AnswerFormat;
  readonly directives: readonly Directive[];
  /** What the request changes beyond its answer; not done where a directive makes that an error. */
  readonly effect?: () => void;
}

/** A request as a route sees it. */
export interface SimulatorRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** Names and values in turn, as they came. */
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  /** From the header `x-simulator-fault`. */
  readonly directives: readonly Directive[];
}

/** One line of the route table. */
export interface Route {
  readonly method: string;
  /** A path, or what a whole path matches. */
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
  /** One step an event, made while they are sent. */
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
