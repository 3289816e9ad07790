import type { Protocol } from '../config/types.js';
import type { TextCodec } from '../conversation/codec.js';
import type { JsonObject } from '../conversation/json.js';
import type { StreamManner } from '../conversation/manner.js';
import type { ConversationRequest } from '../conversation/request.js';
import type { Sealer } from '../conversation/seal.js';

/** What the flow has to know of an endpoint that calls a model: the protocols' `index.ts` make them. */
export interface Endpoint extends StreamManner {
  /** Where the model must be offered. */
  readonly protocol: Protocol;
  /** Path under an upstream's base URL, with the query that belongs to it. */
  upstreamPath(model: string, stream: boolean): string;
  /** The model's name stands in the body; else it is in the path alone, here and at the upstream. */
  readonly modelInBody: boolean;
  /** A stream's usage comes only when the body asks for it with `stream_options.include_usage`. */
  readonly usageOnRequest: boolean;
  /** Where a body says how much it may be answered at most; null where answers are not made of tokens. */
  readonly outputLimit: OutputLimit | null;
  /** How a call is served by an upstream of another protocol; null when it cannot be. */
  readonly translation: Translation | null;
  /** The upstream decides whether its answer is a stream, whatever the call asked for. */
  readonly mayStream: boolean;
  /**
   * Reads from a validated request body what the answer has to be like; null when every answer is passed as it comes.
   * What it returns is called with a whole successful answer and gives that very buffer back when nothing is to do.
   */
  readonly amender: ((body: Buffer) => ((reply: Buffer) => Buffer) | null) | null;
}

/** Names of fields of a request body. */
export interface OutputLimit {
  /** The object of the body that they stand in; null for the body itself. */
  readonly within: string | null;
  /** Tokens of one answer; the first that is there counts. */
  readonly fields: readonly string[];
  /** How many answers are asked for. */
  readonly choices: string;
}

/** How the calls of an endpoint are served by an upstream of another protocol. */
export interface Translation {
  readonly codec: TextCodec;
  /**
   * For a question that the gateway answers by itself where the upstream does not speak the client's protocol.
   * @returns the JSON text of the answer
   */
  readonly answerHere: ((request: ConversationRequest) => string) | null;
  /** Turns a body of this endpoint into one that the codec decodes, where the two differ; else null. */
  readonly unwrap: ((body: JsonObject) => JsonObject) | null;
  /**
   * Makes a body fit for an upstream of the protocol itself that holds what this gateway gave the client to carry:
   * its own vendor's signatures are taken out of their tokens, what another vendor signed is left out, and a
   * compaction that was sealed here becomes the text that it is. Everything else stays as it is. Null for protocols in
   * which a client carries nothing.
   * @returns the changed body, or null when there is nothing of the kind in it
   * @throws {GatewayError} of status 400 for a compaction that does not open
   */
  readonly restore: ((body: JsonObject, sealer: Sealer) => JsonObject | null) | null;
}
