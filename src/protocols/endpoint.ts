import type { Protocol, UpstreamKind } from '../config/types.js';
import type { TargetOptions, TextCodec } from '../conversation/codec.js';
import type { ConversationRules } from '../conversation/kept-turns.js';
import type { LeftOut } from '../conversation/left-out.js';
import type { ConversationRequest } from '../conversation/request.js';
import {
  plainRules,
  reportedMetering,
  type StreamRules,
  wholeAnswers,
} from '../conversation/stream-rules.js';
import { estimateTokens } from '../conversation/token-count.js';
import type { CompiledSchema } from '../schema/accept.js';
import type { JsonObject } from '../wire/json.js';
import type { Needle } from '../wire/json-skip.js';
import { outputMembers } from '../wire/routed-members.js';
import type { Sealer } from '../wire/seal.js';
import { type EffectRule, noEffects } from './effects.js';

/** What the flow has to know of an endpoint that calls a model: the protocols' `index.ts` make them. */
export interface Endpoint extends StreamRules {
  /** Where the model must be offered. */
  readonly protocol: Protocol;
  /** Path under an upstream's base URL, with the query that belongs to it. */
  upstreamPath(model: string, stream: boolean): string;
  /**
   * What of a client's query an upstream of the protocol itself is told, with its question mark, or empty. Null in place
   * of the function where that is nothing.
   */
  readonly upstreamQuery: ((query: string) => string) | null;
  /** The model's name stands in the body; else it is in the path alone, here and at the upstream. */
  readonly modelInBody: boolean;
  /** A stream's usage comes only when the body asks for it with `stream_options.include_usage`. */
  readonly usageOnRequest: boolean;
  /** Where a body says how much it may be answered at most; null where answers are not made of tokens. */
  readonly outputLimit: OutputLimit | null;
  /**
   * Upstreams of the protocol may not have it. One that says so is asked as one of another protocol is, by way of
   * `translation`.
   */
  readonly mayLack: boolean;
  /** How a call is served by an upstream of another protocol; null when it cannot be. */
  readonly translation: Translation | null;
  /** How a call is served by upstreams that have the same operation in another form. */
  readonly otherForms: readonly OtherForm[];
  /** The upstream decides whether its answer is a stream, whatever the call asked for. */
  readonly streamsUnasked: boolean;
  /** What is no stream and no error is JSON; else it may be any text, or a sound. */
  readonly answersJson: boolean;
  /**
   * Reads from a validated request body what the answer has to be like; null when every answer is passed as it comes.
   * What it returns is called with a whole successful answer and gives that very buffer back when nothing is to do.
   */
  readonly amender: ((body: Buffer) => ((answer: Buffer) => Buffer) | null) | null;
  /** How its calls go on from earlier ones; null where each stands for itself. */
  readonly conversation: ConversationRules | null;
  /** Which requests are not sent a second time to upstreams that take them as they came. */
  readonly hasEffects: EffectRule;
  /** With `background` in a body its answer comes to another request, which asks for it later. */
  readonly answersLater: boolean;
}

/** An endpoint whose calls can be translated. */
export interface TextEndpoint extends Endpoint {
  readonly translation: Translation;
}

/** What holds of an endpoint that says nothing else. */
export const plainEndpoint = {
  ...plainRules,
  upstreamQuery: null,
  modelInBody: true,
  usageOnRequest: false,
  outputLimit: null,
  mayLack: false,
  translation: null,
  otherForms: [],
  streamsUnasked: false,
  answersJson: true,
  amender: null,
  conversation: null,
  answersLater: false,
} as const satisfies Partial<Endpoint>;

/** Names of fields of a request body. */
export interface OutputLimit {
  /** Names of the object of the body that they stand in; null for the body itself. */
  readonly within: readonly string[] | null;
  /** Tokens of one answer; the largest counts. */
  readonly fields: readonly string[];
  /** How many answers are asked for; the largest counts. */
  readonly choices: readonly string[];
  /** A list, for each element of which there are so many answers; null where there is none. */
  readonly each: string | null;
}

/** Of a body that says so in members of its own. */
export const bodyOutputLimit: OutputLimit = {
  within: null,
  fields: outputMembers.maxTokens,
  choices: outputMembers.choices,
  each: null,
};

/**
 * An operation as upstreams of some kinds have it. It is the same operation; only its JSON is written in another form, so
 * that no codec is needed.
 */
export interface OtherForm {
  /** Those upstreams; all others have it in the endpoint's own form. */
  readonly kinds: ReadonlySet<UpstreamKind>;
  /** Path under an upstream's base URL. */
  upstreamPath(model: string): string;
  /** Of the upstream's answers. */
  readonly rules: StreamRules;
  /**
   * @param names of the model, for the upstream and as the client has it
   * @throws {GatewayError} of status 400, naming the client's member, for what the form cannot say
   */
  convert(
    body: JsonObject,
    names: { readonly upstream: string; readonly client: string },
    leftOut: LeftOut,
  ): OtherFormRequest;
}

/** A request in the other form. */
export interface OtherFormRequest {
  /** JSON text. */
  readonly body: string;
  /**
   * @param answer a whole successful one
   * @returns the client's
   * @throws {GatewayError} `upstream_error` for one that is none
   */
  readonly answer: (answer: Buffer) => Buffer;
}

/** How the calls of an endpoint are served by an upstream of another protocol. */
export interface Translation {
  /** Of the client's protocol. */
  readonly codec: TextCodec;
  /** What a body has to be like, besides what is asked of every one, so that the codec can decode it. */
  readonly schema: CompiledSchema;
  /** Upstreams of the protocol take media by URL; else what a client names so is fetched for them. */
  readonly mediaByUrl: boolean;
  /**
   * For a question that the gateway answers by itself where the upstream does not speak the client's protocol.
   * @returns the JSON text of the answer
   */
  readonly answerHere: ((request: ConversationRequest) => string) | null;
  /** Turns a body of this endpoint into one that the codec decodes, where the two differ; else null. */
  readonly unwrap: ((body: JsonObject) => JsonObject) | null;
  /**
   * One of these is in every body that holds what this gateway gave the client to carry. Only such a body is parsed for
   * `restore`, and one that `mayLackSignature`.
   */
  readonly carriedMarks: readonly Needle[];
  /** Whether a body may lack a signature that the vendor asks for, which no mark tells; null where it asks for none. */
  readonly mayLackSignature: ((body: Buffer) => boolean) | null;
  /** Is in every body that turns thinking off by a member which some models refuse; null where the protocol has none. */
  readonly thinkingOff: Needle | null;
  /**
   * Makes a body fit for an upstream of the protocol itself that holds what this gateway gave the client to carry:
   * its own vendor's signatures are taken out of their tokens, what another vendor signed is left out, and a
   * compaction that was sealed here becomes the text that it is, or is left out where it does not open. What the
   * vendor would refuse for want of a signature goes, or is replaced with it; everything else stays as it is.
   * @returns the changed body, or null when there is nothing of the kind in it
   */
  readonly restore: (body: JsonObject, sealer: Sealer, target: TargetOptions) => JsonObject | null;
}

/** What holds of a translation that says nothing else. */
export const plainTranslation = {
  mediaByUrl: true,
  answerHere: null,
  unwrap: null,
  mayLackSignature: null,
  thinkingOff: null,
} as const satisfies Partial<Translation>;

/** What an endpoint that counts the tokens of a request has of its own. */
interface TokenCount {
  readonly upstreamPath: Endpoint['upstreamPath'];
  readonly schema: CompiledSchema;
  /** @returns JSON text */
  readonly answer: (tokens: number) => string;
  readonly conversation: ConversationRules | null;
  readonly unwrap: Translation['unwrap'];
}

/**
 * The question how many tokens a request of an endpoint has. Other protocols have no such question: for their models the
 * answer is an estimate.
 */
export function tokenCountOf(
  { protocol, upstreamQuery, modelInBody, judgeStart, translation }: TextEndpoint,
  { upstreamPath, schema, answer, conversation, unwrap }: TokenCount,
): Endpoint {
  return {
    ...plainEndpoint,
    ...wholeAnswers(() => null, reportedMetering, judgeStart),
    protocol,
    upstreamPath,
    upstreamQuery,
    modelInBody,
    mayLack: true,
    translation: { ...translation, schema, unwrap, answerHere: (request) => answer(estimateTokens(request)) },
    conversation,
    hasEffects: noEffects,
  };
}
