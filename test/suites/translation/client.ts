import type { TextProtocolName } from '../../../src/conversation/request.js';
import type { JsonObject } from '../../../src/wire/json.js';

export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonObject;
}

/** An image as bytes in base64, or by its URL. */
export type Image =
  | { readonly mediaType: string; readonly data: string }
  | { readonly mediaType: string; readonly url: string };

/** One call of a model, apart from how the client's protocol words it. */
export interface Ask {
  /** Turns in the client's own form, as its `user`, `assistant` and `results` make them. */
  readonly turns: readonly unknown[];
  readonly stream: boolean;
  readonly system?: string;
  readonly tools?: readonly ToolSpec[];
  readonly stop?: readonly string[];
  readonly maxTokens?: number;
  readonly schema?: JsonObject;
  /** Asks for reasoning of medium effort, and whether to be shown it where the protocol leaves that open. */
  readonly thinks?: 'shown' | 'hidden';
  readonly candidates?: number;
  readonly logprobs?: boolean;
  readonly topK?: number;
  /** The upstream is to search the web itself. */
  readonly searches?: boolean;
}

interface Call {
  readonly id: string;
  readonly name: string;
  readonly args: unknown;
}

/** What a client read, apart from how its protocol words it. */
export interface Answer {
  readonly text: string;
  /** Empty in protocols that have no field for it. */
  readonly refusal: string;
  readonly reasoning: string;
  readonly calls: readonly Call[];
  readonly finish: 'stop' | 'stopSequence' | 'length' | 'tools' | 'filtered' | 'other' | null;
  readonly stopSequence: string | null;
  /** Texts of the further candidates. */
  readonly more: readonly string[];
  /** Tokens of the text whose log probability is told. */
  readonly logprobs: number;
  readonly usage: { readonly input: number; readonly output: number; readonly reasoning: number } | null;
  /** The answer in the client's own form, as it goes into the next turn. */
  readonly turns: readonly unknown[];
  readonly error: Failure | null;
}

interface Failure {
  /** 200 for an error inside a stream. */
  readonly status: number;
  /** The protocol's word for the kind of error. */
  readonly type: string;
  readonly message: string;
  /** The parameter at fault, in the protocols that have a field for it. */
  readonly param: string | null;
  readonly retryAfter: string | null;
}

interface CallRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: JsonObject;
}

/** A client of one protocol: requests as its SDK's users write them, and answers as its SDK reads them. */
export interface Client {
  readonly protocol: TextProtocolName;
  /** The error `type` (or status word) for too many requests. */
  readonly rateLimited: string;
  user(text: string, image?: Image): readonly unknown[];
  results(results: readonly { readonly call: Call; readonly output: string }[]): readonly unknown[];
  request(model: string, ask: Ask): CallRequest;
  readWhole(body: unknown): Answer;
  /** @throws Error naming the rule of the protocol that the stream breaks */
  readStream(text: string): Answer;
  readError(body: unknown): Pick<Failure, 'type' | 'message' | 'param'>;
}

/** Raises a breach of a protocol's rules. */
export function rule(holds: boolean, broken: string): asserts holds {
  if (!holds) throw new Error(`the stream breaks a rule: ${broken}`);
}

/** An answer that is nothing but an error. */
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
