import type { GatewayError } from '../errors.js';
import type { JsonObject } from '../wire/json.js';
import type { RawTextFrame } from '../wire/raw-text.js';
import type { Sealer } from '../wire/seal.js';
import type { Answer, StreamEvent } from './answer.js';
import type { LeftOut } from './left-out.js';
import type { ClientTool, ConversationRequest, TextProtocolName, Tool } from './request.js';
import type { Setting } from './setting-names.js';
import type { Usage } from './usage.js';
import type { SearchSetting } from './web-search.js';

/** What requests of a protocol may contain. `fit/` changes requests that contain more; encoders do not. */
export interface RequestRules {
  readonly protocol: TextProtocolName;
  /** Whether tools may take free text. `option`: if the target's `translation.customTools` is set. */
  readonly customTools: 'always' | 'option' | 'never';
  /** Whether `topK` may be set. `option`: if the target's `translation.topK` is set. */
  readonly topK: 'always' | 'option' | 'never';
  /**
   * How reasoning is kept for the next turn: with a signature that clients return, encrypted in items of its own, or
   * only as its text.
   */
  readonly reasoning: 'signed' | 'encrypted' | 'unsigned';
  /** Type of the arguments of a call. */
  readonly callArguments: 'object' | 'text';
  /** Scope in which ids of calls must be unique: an answer or the whole conversation. */
  readonly uniqueCalls: 'answer' | 'conversation';
  /** Who may have the first turn. `user`: not the assistant. `noCall`: the assistant, but not with a call. */
  readonly firstTurn: 'any' | 'noCall' | 'user';
  /** Whether a conversation may consist of instructions alone. */
  readonly instructionsAlone: boolean;
  /** Maximum number of places at which a client can mark a prompt for caching. 0 if the protocol has no such marks. */
  readonly cacheBreakpoints: number;
  /** Parts of messages can be marked with OpenAI's breakpoints, for models that know them. */
  readonly partBreakpoints: boolean;
  /** Whether a request may contain the beginning of the answer. `option`: only for models without adaptive thinking. */
  readonly prefill: 'always' | 'option' | 'never';
  /** Maximum number of stop sequences, and whether they may be only white space. */
  readonly stop: { readonly most: number; readonly blank: boolean };
  /** Maximum length of tool names in characters, and the pattern that they must match. */
  readonly toolNames: { readonly longest: number; readonly legal: RegExp };
  /** Type that the root of an answer's schema may have. */
  readonly outputRoot: 'any' | 'object';
  /** Where the word JSON must occur if the answer is to be a JSON object. Null: nowhere. */
  readonly jsonWord: 'anywhere' | 'turns' | null;
  /** Rules for the schema of an answer that constrains the model. Null: it may be any. */
  readonly answerSchema: AnswerSchemaRules | null;
  /** Keywords that the root of a tool's schema must not have. */
  readonly toolRoot: readonly string[];
  /** Rules for the schemas of strict tools. Null if the protocol has no strict tools. */
  readonly strictTools: StrictRules | null;
  /** Settings for which a body of the protocol has no member. */
  readonly lacks: readonly (Setting | 'serving')[];
  /** How an upstream is told to search the web itself. */
  readonly search: SearchRules;
}

/** Rules for strict schemas, in which every object must exclude additional properties. */
export interface StrictRules {
  /** Whether every schema must name the type of its values. */
  readonly typed: boolean;
  /** Whether definitions may be recursive. */
  readonly recursion: boolean;
  /** Keywords that are not allowed. */
  readonly refused: ReadonlySet<string>;
  /** Maximum value of `minItems`. */
  readonly mostMinItems: number;
  /** Allowed values of `format`. */
  readonly formats: ReadonlySet<string>;
  /** Whether a `pattern` is allowed. */
  readonly pattern: (pattern: string) => boolean;
  /** Limits on the sum of all strict tools of a request. */
  readonly most: StrictCounts;
}

export interface AnswerSchemaRules {
  /**
   * Whether the schema constrains the model only if the client asks for it (`strict`) and may otherwise be any. If
   * false, it always does.
   */
  readonly onlyStrict: boolean;
  /** Allowed keywords. */
  readonly keywords: ReadonlySet<string>;
  /** Allowed values of `format`. */
  readonly formats: ReadonlySet<string>;
  /** Whether a `pattern` is allowed. */
  readonly pattern: (pattern: string) => boolean;
  /** Maximum value of `minItems`. */
  readonly mostMinItems: number;
}

export interface StrictCounts {
  readonly tools: number;
  /** Properties that are not required. */
  readonly optional: number;
  /** Schemas of alternative types. */
  readonly unions: number;
}

interface SearchRules {
  /**
   * Whether an upstream is told to search if the target's `translation.search` is not set. `alone`: only without
   * functions and without a format for the answer.
   */
  readonly asked: 'always' | 'alone' | 'never';
  /** Settings of the search that the protocol can express. */
  readonly says: readonly SearchSetting[];
  /** Whether a choice of tools can require the search and forbid it. `implied`: the search always runs. */
  readonly choice: 'any' | 'none' | 'implied';
  /** Name of the search among the tools. No function may have the same name beside it. */
  readonly name: string | null;
}

/** What an encoder of requests needs to know of the target. */
export interface TargetOptions {
  /** Name of the model at the upstream. */
  readonly model: string;
  /** Name of the upstream. */
  readonly upstream: string;
  /** Limit of output tokens if the protocol requires one and the client gave none. */
  readonly maxTokens: number;
  /** Name of the limit in a chat body. */
  readonly maxTokensField: 'max_completion_tokens' | 'max_tokens';
  /**
   * How the amount of thinking is expressed: as a budget; as `thinking: {type: 'adaptive'}` with an effort (messages);
   * or as `thinkingLevel` (generateContent).
   */
  readonly thinking: 'budget' | 'adaptive' | 'levels';
  /** The model accepts `parametersJsonSchema` and `responseJsonSchema` (generateContent). */
  readonly jsonSchema: boolean;
  /** A stream's usage can be requested (chat). */
  readonly streamUsage: boolean;
  /** The model accepts tools of free text as such (chat). */
  readonly customTools: boolean;
  /** The model accepts `top_k`, which the protocol itself lacks (chat). */
  readonly topK: boolean;
  /** The gateway marks prompts for caching if the client has not (messages). */
  readonly promptCaching: boolean;
  /** The model knows OpenAI's cache breakpoints, and the client's marks are sent as such (chat, responses). */
  readonly cacheBreakpoints: boolean;
  /** The target keeps threads that it is asked to begin (messages that are passed on unchanged). */
  readonly threads: boolean;
  /** The model's thinking has no signature, and is returned to it all the same (messages). */
  readonly unsignedThinking: boolean;
  /** The model takes messages of the system within the conversation (messages). */
  readonly systemMessages: boolean;
  /** The model is asked to drop thinking behind a prompt that has changed, which it else refuses (messages). */
  readonly preservedThinking: boolean;
  /** The model accepts a choice that forces a call (messages). */
  readonly forcedCalls: boolean;
  /** The model reasons unasked, and can be asked for its reasoning in encrypted form (responses). */
  readonly encryptedReasoning: boolean;
  /** Whether the target is told to search the web if a client wants that. Null: its protocol decides. */
  readonly search: boolean | null;
  /** What is done with tools that only another vendor can run. */
  readonly hostedTools: 'reject' | 'drop';
}

/** What a decoder of answers needs to know of their origin. */
export interface AnswerSource {
  /** Name of the model at the upstream. Signatures are tagged with it. */
  readonly model: string;
  /** The upstream was told to search the web: its texts may cite sources. */
  readonly searches: boolean;
  /** Name of the upstream. */
  readonly upstream: string;
  /** See `TargetOptions.unsignedThinking`. */
  readonly unsignedThinking: boolean;
  /** Records parts of the answer that the neutral types cannot represent. */
  readonly lost: LeftOut;
}

/** What an encoder of answers needs to know of the call. */
export interface AnswerContext {
  /** Base of the answer's ids: letters and digits, unique to the call. For a kept turn, it cannot be guessed. */
  readonly id: string;
  /** Id of the call, as in its `request-id` header. */
  readonly requestId: string;
  /** Unix time in seconds. */
  readonly created: number;
  /** Name of the model as the client wrote it. */
  readonly model: string;
  /** The client asked for a stream's usage, or its protocol always reports it. */
  readonly includeUsage: boolean;
  /** Reasoning may be shown to the client. Its signatures are passed on regardless. */
  readonly showReasoning: boolean;
  /** See `ConversationRequest.functionForm`. */
  readonly functionForm: boolean;
  /** See `ConversationRequest.echo` and `.compaction`. */
  readonly echo: JsonObject | null;
  /** The client's tools, under its own names. */
  readonly tools: readonly Tool[];
  /** See `ConversationRequest.clientTools`. */
  readonly clientTools?: ReadonlyMap<string, ClientTool> | undefined;
  readonly compaction: ConversationRequest['compaction'];
  /** The client's `user-agent`, or empty. */
  readonly userAgent: string;
  /** The upstream was told to search the web: texts may cite sources. */
  readonly searches: boolean;
  /** Records parts of the answer that the client does not receive. */
  readonly lost: LeftOut;
  readonly sealer: Sealer;
  /** How the events of a generateContent stream are framed. Always `sse` for other protocols. */
  readonly framing: 'sse' | 'array';
}

/** Decodes an upstream's stream, one server-sent event at a time. */
export interface StreamDecoder {
  /** Name of the JSON member with the text, in events that become a `text` event. */
  readonly textMember: string;
  /** Every text must be decoded, since later events refer to positions in it. */
  readonly needsTexts?: boolean;
  /**
   * @param event the `event` field, or null
   * @param data the `data` field
   * @param out receives the neutral events; none follow an `end` or `error`
   */
  decode(event: string | null, data: string, out: StreamEvent[]): void;
  /**
   * Called when the bytes have ended. Adds `end` if the protocol ends that way, else the error. Adds nothing after an
   * end.
   */
  finish(out: StreamEvent[]): void;
}

/** Encodes a client's stream: a state machine that takes one neutral event at a time. */
export interface StreamEncoder {
  /** The error with which the encoder itself ended the stream, or null. Its output for that has been returned. */
  readonly error: GatewayError | null;
  /** Number of encoded characters that it retains until the end of the stream. Absent if it retains none. */
  readonly kept?: number;
  /** @returns the text to send for the event: whole server-sent events, or an empty string */
  encode(event: StreamEvent): string;
  /**
   * Encodes a `text` event of choice 0 whose text was not decoded.
   * @param raw see `raw-text.ts`; not empty
   * @returns the text to send, one byte per character, or null if the text must be passed as an event
   */
  encodeRawText(raw: string): string | null;
  /** Returns what `encodeRawText` puts around each text, one byte per character. Null if that varies. */
  rawTextFrame(): RawTextFrame | null;
  /** Whether `encodeRawText` would accept a text now. */
  takesRawText(): boolean;
}

/** Translates a text protocol to and from the neutral types. Stateless and safe to share. */
export interface TextCodec {
  /** Rules to which a request is fitted before it is encoded. */
  readonly rules: RequestRules;
  /**
   * @param body a whole parsed body that has passed the endpoint's schema
   * @param stream whether the answer is to be streamed
   * @throws {GatewayError} with status 400 if the neutral types cannot represent the body and nothing may be dropped
   */
  decodeRequest(body: JsonObject, stream: boolean, sealer: Sealer): ConversationRequest;
  /**
   * @param request result of `fitRequest` for `rules`
   * @param leftOut records what the body lacks of the request
   * @returns the body's JSON text. It is deterministic: settings, system and tools are first, the conversation is last.
   * The body of the next turn thus begins with the bytes of this one, except for the closing brackets.
   * @throws {GatewayError} with status 400, naming the client's field, for what this protocol cannot express
   */
  encodeRequest(request: ConversationRequest, target: TargetOptions, leftOut: LeftOut): string;
  /** @throws {GatewayError} `upstream_error` if the body is not an answer of the protocol */
  decodeAnswer(body: JsonObject, source: AnswerSource): Answer;
  /** Returns the usage in an answer, also in one that failed. Null if it reports none. */
  usageOf(body: JsonObject): Usage | null;
  /** @returns the JSON text of the whole answer */
  encodeAnswer(answer: Answer, context: AnswerContext): string;
  createDecoder(source: AnswerSource): StreamDecoder;
  createEncoder(context: AnswerContext): StreamEncoder;
}
