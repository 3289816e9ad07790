import type { GatewayError } from '../errors.js';
import type { JsonObject } from '../wire/json.js';
import type { RawTextFrame } from '../wire/raw-text.js';
import type { Sealer } from '../wire/seal.js';
import type { Answer } from './answer.js';
import type { StreamEvent } from './events.js';
import type { LeftOut } from './left-out.js';
import type { ClientTool, ConversationRequest, TextProtocolName } from './request.js';
import type { Setting } from './setting-names.js';
import type { Usage } from './usage.js';
import type { SearchSetting } from './web-search.js';

/** What requests of a protocol may hold. What holds more is changed by `fit/`, not by an encoder. */
export interface RequestRules {
  readonly protocol: TextProtocolName;
  /** Tools that take free text; `option`: where the target's `translation.customTools` says so. */
  readonly customTools: 'always' | 'option' | 'never';
  /** A setting of `topK`; `option`: where the target's `translation.topK` says so. */
  readonly topK: 'always' | 'option' | 'never';
  /**
   * How reasoning is kept for the next turn: by a signature that clients return, encrypted in items of its own, or not at
   * all but by its text.
   */
  readonly reasoning: 'signed' | 'encrypted' | 'unsigned';
  /** What the arguments of a call have to be. */
  readonly callArguments: 'object' | 'text';
  /** Calls that need ids of their own: those of one answer, or of all. */
  readonly uniqueCalls: 'answer' | 'conversation';
  /** Who may speak first: `user` where the assistant may not, `noCall` where it may not with a call. */
  readonly firstTurn: 'any' | 'noCall' | 'user';
  /** A conversation may be of instructions alone. */
  readonly instructionsAlone: boolean;
  /** Places up to which a prompt can be marked to be cached; 0 where that is not for the client to say. */
  readonly cacheBreakpoints: number;
  /** An answer may be begun in the request; `option`: by models that do not adapt their thinking. */
  readonly prefill: 'always' | 'option' | 'never';
  /** Stop sequences: how many there may be, and whether they may be white space alone. */
  readonly stop: { readonly most: number; readonly blank: boolean };
  /** Names of tools: how many characters they may have, and what they have to be. */
  readonly toolNames: { readonly longest: number; readonly legal: RegExp };
  /** What the schema of an answer may be of. */
  readonly outputRoot: 'any' | 'object';
  /** Where the word JSON has to stand for an answer that is a JSON object; null for nowhere. */
  readonly jsonWord: 'anywhere' | 'turns' | null;
  /** What the schema of an answer has to be like to hold a model to it; null where it may be any. */
  readonly answerSchema: AnswerSchemaRules | null;
  /** Keywords that the schema of a tool may not have at its root. */
  readonly toolRoot: readonly string[];
  /** What the schema of a strict tool has to be like; null where no tool is one. */
  readonly strictTools: StrictRules | null;
  /** Settings that a body of the protocol has no member for. */
  readonly lacks: readonly (Setting | 'serving')[];
  /** Its vendor refuses a signature without the very words that it signed. */
  readonly signsWords: boolean;
  /** How an upstream is asked to search the web itself. */
  readonly search: SearchRules;
}

/** A schema of which each object says that it has no other members, and more. */
export interface StrictRules {
  /** Each schema says of what type its values are. */
  readonly typed: boolean;
  /** Definitions may lead back to themselves. */
  readonly recursion: boolean;
  /** Keywords that it does not have. */
  readonly refused: ReadonlySet<string>;
  /** The largest `minItems`. */
  readonly mostMinItems: number;
  /** Values of `format` that it may have. */
  readonly formats: ReadonlySet<string>;
  /** A `pattern` that it may have. */
  readonly pattern: (pattern: string) => boolean;
  /** What the strict tools of a request may have in all. */
  readonly most: StrictCounts;
}

export interface AnswerSchemaRules {
  /** It holds a model where the client asks for that (`strict`), and may be any elsewhere; else it always does. */
  readonly onlyStrict: boolean;
  /** Keywords that it may have. */
  readonly keywords: ReadonlySet<string>;
  /** Values of `format` that it may have. */
  readonly formats: ReadonlySet<string>;
  /** A `pattern` that it may have. */
  readonly pattern: (pattern: string) => boolean;
  /** The largest `minItems`. */
  readonly mostMinItems: number;
}

export interface StrictCounts {
  readonly tools: number;
  /** Members that are not required. */
  readonly optional: number;
  /** Schemas of one type or another. */
  readonly unions: number;
}

interface SearchRules {
  /**
   * Whether an upstream is asked to search where the target's `translation.search` says nothing; `alone`: beside no functions, and where the answer
   * has no format.
   */
  readonly asked: 'always' | 'alone' | 'never';
  /** Settings that can be said of the search. */
  readonly says: readonly SearchSetting[];
  /** Whether a choice of tools can be the search, and keep the model from it; `implied`: it is always run. */
  readonly choice: 'any' | 'none' | 'implied';
  /** Name of the search among the tools, which no function may have beside it. */
  readonly name: string | null;
}

/** What an encoder of requests has to know of the target. */
export interface TargetOptions {
  /** The model's name at the upstream. */
  readonly model: string;
  /** Limit of output tokens where the protocol wants one and the client named none. */
  readonly maxTokens: number;
  /** Field of the limit in a chat body. */
  readonly maxTokensField: 'max_completion_tokens' | 'max_tokens';
  /**
   * How much a model is to think is said by a budget; by `thinking: {type: 'adaptive'}` with an effort (messages); or by
   * `thinkingLevel` (generateContent).
   */
  readonly thinking: 'budget' | 'adaptive' | 'levels';
  /** The model takes `parametersJsonSchema` and `responseJsonSchema` (generateContent). */
  readonly jsonSchema: boolean;
  /** A stream's usage may be asked for (chat). */
  readonly streamUsage: boolean;
  /** The model takes tools of free text as such (chat). */
  readonly customTools: boolean;
  /** The model takes `top_k`, which the protocol itself does not have (chat). */
  readonly topK: boolean;
  /** Prompts are marked to be cached where the client has not done so (messages). */
  readonly promptCaching: boolean;
  /** It keeps the threads that it is asked to begin (messages that it takes as they come). */
  readonly threads: boolean;
  /** It is asked to search the web itself where a client wants that; null where its protocol decides. */
  readonly search: boolean | null;
  /** What becomes of tools that only another vendor can run. */
  readonly hostedTools: 'reject' | 'drop';
}

/** What a decoder of answers has to know of where they come from. */
export interface AnswerSource {
  /** The model's name at the upstream: what signatures are tagged with. */
  readonly model: string;
  /** It was asked to search the web: its texts may name sources. */
  readonly searches?: boolean | undefined;
  /** Is told what the answer has that the neutral types do not hold. */
  readonly lost?: LeftOut | undefined;
}

/** What an encoder of answers has to know of the call. */
export interface AnswerContext {
  /** What the ids of the answer are made of: letters and digits, unique to the call. Of a kept turn nobody can guess it. */
  readonly id: string;
  /** The call's, as its `request-id` header has it. */
  readonly requestId: string;
  /** Unix seconds. */
  readonly created: number;
  /** The model's name as the client used it. */
  readonly model: string;
  /** The client asked for the usage of a stream, or its protocol always has it. */
  readonly includeUsage: boolean;
  /** Reasoning may be shown to the client; its signatures are carried in any case. */
  readonly showReasoning: boolean;
  /** See `ConversationRequest.echo` and `.compaction`. */
  readonly echo: JsonObject | null;
  /** See `ConversationRequest.clientTools`. */
  readonly clientTools?: ReadonlyMap<string, ClientTool> | undefined;
  readonly compaction: ConversationRequest['compaction'];
  /** How the client names itself, or empty. */
  readonly userAgent?: string | undefined;
  /** The upstream was asked to search the web: texts may name sources. */
  readonly searches?: boolean | undefined;
  /** Is told what of the answer the client does not get. */
  readonly lost?: LeftOut | undefined;
  readonly sealer: Sealer;
  /** How the events of a generateContent stream are framed; elsewhere always `sse`. */
  readonly framing: 'sse' | 'array';
}

/** Reads an upstream's stream, one server-sent event at a time. */
export interface StreamDecoder {
  /** Name of the JSON member that holds the text of an event that gives a `text`. */
  readonly textMember: string;
  /** Texts must not pass it by: what comes later names places in them. */
  readonly needsTexts?: boolean;
  /**
   * @param event the `event` field, or null
   * @param data the `data` field
   * @param out where the neutral events go; never more after an `end` or `error`
   */
  decode(event: string | null, data: string, out: StreamEvent[]): void;
  /** The bytes have ended: adds `end` where the protocol ends so, or the error that it is, or nothing after an end. */
  finish(out: StreamEvent[]): void;
}

/** Writes a client's stream: a state machine that is fed one neutral event at a time. */
export interface StreamEncoder {
  /** Why the encoder has ended the stream by itself (its words have been given out), or null. */
  readonly error: GatewayError | null;
  /** Characters of what was encoded that it keeps for the end of the stream; absent where it keeps none. */
  readonly kept?: number;
  /** @returns the text to send for it, whole server-sent events, or an empty string */
  encode(event: StreamEvent): string;
  /**
   * The same as a `text` event of choice 0, for a text that need not be decoded on its way.
   * @param raw see `raw-text.ts`; not empty
   * @returns the text to send, one byte a character, or null when the text has to come as an event
   */
  encodeRawText(raw: string): string | null;
  /** What `encodeRawText` puts around each text, one byte a character; null where that is not always the same. */
  rawTextFrame(): RawTextFrame | null;
  /** Whether `encodeRawText` would take a text now. */
  takesRawText(): boolean;
}

/** A text protocol's translation to and from the neutral types. Stateless; safe to share. */
export interface TextCodec {
  /** What a request is changed to before it is encoded. */
  readonly rules: RequestRules;
  /**
   * @param body a whole parsed body that has passed the endpoint's schema
   * @param stream whether the answer is to be streamed
   * @throws {GatewayError} of status 400 for what the neutral types cannot hold and may not be dropped
   */
  decodeRequest(body: JsonObject, stream: boolean, sealer: Sealer): ConversationRequest;
  /**
   * @param request as `fitRequest` gives it for `rules`
   * @param leftOut is told what the body does not have of it
   * @returns the body's JSON text. Deterministic: settings, system and tools first, the conversation last, so that the
   * body of a conversation's next turn begins with this one's bytes (but for the closing brackets).
   * @throws {GatewayError} of status 400, naming the client's field, for what this protocol cannot say
   */
  encodeRequest(request: ConversationRequest, target: TargetOptions, leftOut: LeftOut): string;
  /** @throws {GatewayError} `upstream_error` for an answer that is none of the protocol */
  decodeAnswer(body: JsonObject, source: AnswerSource): Answer;
  /** What an answer says that was used, of one that has failed, too; null where it says nothing. */
  usageOf(body: JsonObject): Usage | null;
  /** @returns the JSON text of the whole answer */
  encodeAnswer(answer: Answer, context: AnswerContext): string;
  createDecoder(source: AnswerSource): StreamDecoder;
  createEncoder(context: AnswerContext): StreamEncoder;
}
