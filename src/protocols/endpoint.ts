import type { Protocol, UpstreamKind } from '../config/types.js';
import type { TargetOptions, TextCodec } from '../conversation/codec.js';
import type { ConversationRules } from '../conversation/kept-turns.js';
import type { LeftOut } from '../conversation/left-out.js';
import type { ConversationRequest } from '../conversation/request.js';
import {
  judgingEvents,
  plainRules,
  reportedMetering,
  type StreamRules,
  wholeAnswers,
} from '../conversation/stream-rules.js';
import { estimateTokens } from '../conversation/token-count.js';
import type { CompiledSchema } from '../schema/accept.js';
import { type JsonObject, parseObject } from '../wire/json.js';
import type { Needle } from '../wire/json-skip.js';
import { outputMembers } from '../wire/routed-members.js';
import type { Sealer } from '../wire/seal.js';
import { type EffectRule, noEffects } from './effects.js';
import { upstreamError } from './error-formats/upstream-error.js';

/** What the flow needs to know of an endpoint that calls a model. Each protocol's `index.ts` defines its own. */
export interface Endpoint extends StreamRules {
  /** The protocol that a target has to serve. */
  readonly protocol: Protocol;
  /** Returns the path under an upstream's base URL, with the query that belongs to it. */
  upstreamPath(model: string, stream: boolean): string;
  /**
   * Returns the part of a client's query that is passed to an upstream of the same protocol: with its question mark, or
   * empty. Null instead of a function if the query is never passed on.
   */
  readonly upstreamQuery: ((query: string) => string) | null;
  /**
   * The model's name is in the body. If false, it is only in the path, of the client's request and of the upstream's.
   */
  readonly modelInBody: boolean;
  /** A stream reports its usage only if the body asks for it with `stream_options.include_usage`. */
  readonly usageOnRequest: boolean;
  /** Where a body limits the length of its answer; null if answers are not made of tokens. */
  readonly outputLimit: OutputLimit | null;
  /**
   * A list in the body of which upstreams bill so many elements as one call. Null if they bill a call once, or if it is not
   * read here.
   */
  readonly countedList: {
    readonly name: string;
    readonly perUnit: number;
    /** A text in the body whose tokens upstreams that bill tokens count once with each element. */
    readonly repeated: string;
  } | null;
  /**
   * Upstreams of the protocol may lack this endpoint. The call is then sent to such an upstream by way of
   * `translation`, as to one of another protocol.
   */
  readonly mayLack: boolean;
  /** How an upstream of another protocol serves a call; null if none can. */
  readonly translation: Translation | null;
  /** How upstreams that have the same operation in another form serve a call. */
  readonly otherForms: readonly OtherForm[];
  /** The upstream decides whether its answer is a stream, whatever the call requested. */
  readonly streamsUnasked: boolean;
  /** Every answer that is neither a stream nor an error is JSON. If false, it may be any text, or audio. */
  readonly answersJson: boolean;
  /**
   * Reads from a validated request body what the answer has to be changed to; null if every answer is passed on
   * unchanged. The function that it returns receives a whole successful answer, and returns the same buffer if nothing
   * has to change.
   */
  readonly amender: ((body: Buffer) => ((answer: Buffer) => Buffer) | null) | null;
  /** How its calls continue from earlier ones; null if every call is independent. */
  readonly conversation: ConversationRules | null;
  /** Tells which requests are not sent a second time to upstreams that take them untouched. */
  readonly hasEffects: EffectRule;
  /** With `background` in a body, the answer is fetched later, by another request. */
  readonly answersLater: boolean;
}

/** An endpoint whose calls can be translated. */
export interface TextEndpoint extends Endpoint {
  readonly translation: Translation;
}

/** Defaults for an endpoint. */
export const plainEndpoint = {
  ...plainRules,
  upstreamQuery: null,
  modelInBody: true,
  usageOnRequest: false,
  outputLimit: null,
  countedList: null,
  mayLack: false,
  translation: null,
  otherForms: [],
  streamsUnasked: false,
  answersJson: true,
  amender: null,
  conversation: null,
  answersLater: false,
} as const satisfies Partial<Endpoint>;

/** Names of members of a request body. */
export interface OutputLimit {
  /** Path of the object that holds the members; null for the body itself. */
  readonly within: readonly string[] | null;
  /** Limits of the tokens of one answer; the largest counts. */
  readonly fields: readonly string[];
  /** Numbers of answers; the largest counts. */
  readonly choices: readonly string[];
  /** A list of which each element gets that many answers; null if there is none. */
  readonly each: string | null;
}

/** For a body that has the limit in its own members. */
export const bodyOutputLimit: OutputLimit = {
  within: null,
  fields: outputMembers.maxTokens,
  choices: outputMembers.choices,
  each: null,
};

/** An operation in the form that some kinds of upstreams use. Only its JSON differs, so no codec is needed. */
export interface OtherForm {
  /** The kinds with this form. All others use the endpoint's own form. */
  readonly kinds: ReadonlySet<UpstreamKind>;
  /** Returns the path under an upstream's base URL. */
  upstreamPath(model: string): string;
  /** Stream rules for the upstream's answers. */
  readonly rules: StreamRules;
  /**
   * @param names of the model: the upstream's and the client's
   * @throws {GatewayError} of status 400, naming the client's member, for what the form cannot express
   */
  convert(
    body: JsonObject,
    names: { readonly upstream: string; readonly client: string },
    leftOut: LeftOut,
  ): OtherFormRequest;
}

/** A request in another form. */
export interface OtherFormRequest {
  /** JSON text. */
  readonly body: string;
  /**
   * Converts an answer to the client's form.
   * @param answer a whole successful one
   * @throws {GatewayError} `upstream_error` if it is not valid
   */
  readonly answer: (answer: Buffer) => Buffer;
}

/** How an upstream of another protocol serves the calls of an endpoint. */
export interface Translation {
  /** The codec of the client's protocol. */
  readonly codec: TextCodec;
  /** What a body has to fulfil for the codec to decode it, besides what is required of every body. */
  readonly schema: CompiledSchema;
  /** Upstreams of the protocol take media by URL. If false, the gateway downloads media that a client gives by URL. */
  readonly mediaByUrl: boolean;
  /**
   * Answers requests that the gateway answers on its own if the upstream does not speak the client's protocol; null for
   * all others.
   * @returns the JSON text of the answer
   */
  readonly answerHere: ((request: ConversationRequest) => string) | null;
  /** Converts a body of this endpoint to one that the codec decodes; null if they are the same. */
  readonly unwrap: ((body: JsonObject) => JsonObject) | null;
  /**
   * Every body with something that this gateway gave the client to carry contains one of these. Only such bodies, and
   * those for which `mayLackSignature` returns true, are parsed for `restore`.
   */
  readonly carriedMarks: readonly Needle[];
  /**
   * Tells whether a body may lack a signature that the vendor requires, which no mark shows; null if the vendor
   * requires none.
   */
  readonly mayLackSignature: ((body: Buffer) => boolean) | null;
  /**
   * Every body that turns thinking off by a member that some models refuse contains one of these. Empty if the protocol has no
   * such member.
   */
  readonly thinkingOff: readonly Needle[];
  /** Upstreams of the protocol get reasoning that no vendor has signed, which clients of other protocols carry. */
  readonly takesUnsigned: boolean;
  /** Models of the protocol that make images do so unless the request rules it out. */
  readonly makesImagesUnasked: boolean;
  /**
   * Prepares a body for an upstream of its own protocol if it holds something that this gateway gave the client to
   * carry. Signatures of the upstream's vendor are taken out of their tokens, and those of other vendors are removed. A
   * compaction that was sealed here becomes its text, or is removed if it cannot be opened. What the vendor would
   * refuse for lack of a signature is removed, or gets a replacement. Everything else stays unchanged.
   * @returns the changed body, or null if there is nothing to change
   */
  readonly restore: (body: JsonObject, sealer: Sealer, target: TargetOptions) => JsonObject | null;
}

/** Defaults for a translation. */
export const plainTranslation = {
  mediaByUrl: true,
  answerHere: null,
  unwrap: null,
  mayLackSignature: null,
  thinkingOff: [],
  takesUnsigned: false,
  makesImagesUnasked: false,
} as const satisfies Partial<Translation>;

/** The parts of an endpoint that counts the tokens of a request. */
interface TokenCount {
  readonly upstreamPath: Endpoint['upstreamPath'];
  readonly schema: CompiledSchema;
  /** @returns JSON text */
  readonly answer: (tokens: number) => string;
  readonly conversation: ConversationRules | null;
  readonly unwrap: Translation['unwrap'];
}

/**
 * Makes the endpoint that counts the tokens of another endpoint's requests. Other protocols have no such request: for
 * their models the gateway answers with an estimate.
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

/** The `StreamRules.judgeStart` of endpoints that do not stream, with errors in the common form. */
export const judgeError = judgingEvents(
  (_event, data) => upstreamError(parseObject(data)?.error) ?? 'meaningful',
);
