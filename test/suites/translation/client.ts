import type { TextProtocolName } from '../../../src/conversation/request.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { at, textAt } from '../../support/json.js';

export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonObject;
}

/** An image as base64, or by its URL. */
export type Image =
  | { readonly mediaType: string; readonly data: string }
  | { readonly mediaType: string; readonly url: string };

/** A model call, independent of the client's protocol. */
export interface Ask {
  /** Turns in the client's own form, from its `user`, `assistant` and `results`. */
  readonly turns: readonly unknown[];
  readonly stream: boolean;
  readonly system?: string;
  readonly tools?: readonly ToolSpec[];
  readonly stop?: readonly string[];
  readonly maxTokens?: number;
  readonly schema?: JsonObject;
  /** Requests reasoning of medium effort, and whether it is shown, if the protocol leaves that open. */
  readonly thinks?: 'shown' | 'hidden';
  readonly candidates?: number;
  readonly logprobs?: boolean;
  readonly topK?: number;
  /** The upstream searches the web itself. */
  readonly searches?: boolean;
}

interface Call {
  readonly id: string;
  readonly name: string;
  readonly args: unknown;
}

/** What a client read, independent of its protocol. */
export interface Answer {
  readonly text: string;
  /** Empty in protocols without a field for it. */
  readonly refusal: string;
  readonly reasoning: string;
  readonly calls: readonly Call[];
  readonly finish: 'stop' | 'stopSequence' | 'length' | 'tools' | 'filtered' | 'other' | null;
  readonly stopSequence: string | null;
  /** Texts of the further candidates. */
  readonly more: readonly string[];
  /** Tokens of the text with a reported log probability. */
  readonly logprobs: number;
  readonly usage: { readonly input: number; readonly output: number; readonly reasoning: number } | null;
  /** The answer in the client's own form, for the next turn. */
  readonly turns: readonly unknown[];
  readonly error: Failure | null;
}

interface Failure {
  /** 200 for an error inside a stream. */
  readonly status: number;
  /** The protocol's word for the kind of error. */
  readonly type: string;
  readonly message: string;
  /** The parameter at fault, in protocols with a field for it. */
  readonly param: string | null;
  readonly retryAfter: string | null;
}

/** What an answer's body says of an error. */
type SaidError = Pick<Failure, 'type' | 'message' | 'param'>;

interface CallRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: JsonObject;
}

/** A client of one protocol: requests in the form of its SDK's users, and answers as its SDK reads them. */
export interface Client {
  readonly protocol: TextProtocolName;
  /** The error `type` (or status word) for too many requests. */
  readonly rateLimited: string;
  user(text: string, image?: Image): readonly unknown[];
  results(results: readonly { readonly call: Call; readonly output: string }[]): readonly unknown[];
  request(model: string, ask: Ask): CallRequest;
  readWhole(body: unknown): Answer;
  /** @throws Error that names the rule of the protocol that the stream breaks */
  readStream(text: string): Answer;
  readError(body: unknown): SaidError;
}

/** Throws for a broken rule of a protocol. */
export function rule(holds: boolean, broken: string): asserts holds {
  if (!holds) throw new Error(`the stream breaks a rule: ${broken}`);
}

/** Returns an answer that consists of an error. */
export function failed(error: Failure): Answer {
  return {
    text: '',
    refusal: '',
    reasoning: '',
    calls: [],
    finish: null,
    stopSequence: null,
    more: [],
    logprobs: 0,
    usage: null,
    turns: [],
    error,
  };
}

/** Reads an error of OpenAI's protocols. */
export function readOpenaiError(body: unknown): SaidError {
  const error = at(body, 'error');
  const param = at(error, 'param');
  return {
    type: textAt(error, 'type'),
    message: textAt(error, 'message'),
    param: typeof param === 'string' ? param : null,
  };
}
