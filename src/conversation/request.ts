import type { JsonObject } from '../wire/json.js';
import type { WebSearch } from './web-search.js';

/** The protocols between which a conversation can be translated. */
export const textProtocols = ['chat', 'responses', 'messages', 'generateContent'] as const;
export type TextProtocolName = (typeof textProtocols)[number];

/** Bytes of a media file, or its URL. */
export type MediaSource =
  | {
      readonly kind: 'data';
      /** Lower case, such as `image/png`; `application/octet-stream` if the protocol did not name a type. */
      readonly mediaType: string;
      /** Base64 without a `data:` prefix. */
      readonly data: string;
    }
  | { readonly kind: 'url'; readonly url: string; readonly mediaType: string | null };

/** Marks the end of a prefix that the upstream's prompt cache should keep. */
export interface CacheMark {
  /** Lifetime of the cache entry. Null: the upstream decides. */
  readonly ttl: '5m' | '1h' | null;
  /** The mark's name in the client's protocol. Default: `cache_control`. */
  readonly name?: 'prompt_cache_breakpoint';
  /** OpenAI's word for the least lifetime, if its client gave one. */
  readonly minimum?: string;
}

export interface Cacheable {
  readonly cache?: CacheMark | undefined;
}

export interface TextPart extends Cacheable {
  readonly kind: 'text';
  readonly text: string;
}

/** An image, document, sound or video. */
export interface MediaPart extends Cacheable {
  readonly kind: 'image' | 'document' | 'audio' | 'video';
  readonly source: MediaSource;
  /** Requested resolution (`low`, `high`, …), or null. Only for images. */
  readonly detail: string | null;
  /** File name of a document, or null. */
  readonly name: string | null;
  /** Path in the client's body (`messages[2].content[0]`), for error messages. */
  readonly at: string;
}

/** The result of a tool call. */
export interface ToolResultPart extends Cacheable {
  readonly kind: 'toolResult';
  /** Empty if a result names no call and matches none: `fit/tool-results.ts` turns it into text. */
  readonly callId: string;
  /** Name of the called tool. Empty if neither the protocol nor the conversation names it. */
  readonly name: string;
  readonly content: readonly ContentPart[];
  readonly isError: boolean;
  readonly at: string;
}

export interface ToolCallPart extends Cacheable {
  readonly kind: 'toolCall';
  /** Empty if the upstream gave none: encoders of answers create one. */
  readonly id: string;
  readonly name: string;
  /** JSON text of the arguments (`{}` for none, never empty), or the free text of a custom tool. */
  readonly input: string;
  /** Whether the tool takes free text. */
  readonly custom: boolean;
  /** In an answer to a chat client: signatures beside the call, for those that do not fit in its id. */
  readonly signature?: string | undefined;
  readonly at: string;
}

/** Reasoning that a model wrote before its answer. */
export interface ReasoningPart {
  readonly kind: 'reasoning';
  /** Empty if only the signature is known. */
  readonly text: string;
  /** The token of `signature.ts` that the client carries, or null. */
  readonly signature: string | null;
}

export interface RefusalPart extends Cacheable {
  readonly kind: 'refusal';
  readonly text: string;
}

/** What a user says or a tool returns. */
export type ContentPart = TextPart | MediaPart;
export type UserPart = ContentPart | ToolResultPart;
export type AssistantPart = TextPart | RefusalPart | ToolCallPart | ReasoningPart | MediaPart;

/**
 * One turn. Adjacent turns may have the same role; encoders merge them where their protocol requires it. Tool results
 * precede all other parts of a user turn.
 */
export type Turn =
  /** Instructions within a conversation; those at its start are in `system`. */
  | { readonly role: 'system'; readonly text: string; readonly cache?: CacheMark | undefined }
  | { readonly role: 'user'; readonly parts: readonly UserPart[] }
  | { readonly role: 'assistant'; readonly parts: readonly AssistantPart[] };

export interface Tool extends Cacheable {
  readonly name: string;
  readonly description: string | null;
  /** JSON Schema of the arguments. Null if the client gave none. */
  readonly parameters: JsonObject | null;
  readonly strict: boolean | null;
  /**
   * Set for a tool that takes free text: `format` in the flat form of the responses protocol, or null for plain text.
   */
  readonly custom?: { readonly format: JsonObject | null } | undefined;
}

/** A tool that only an upstream of the client's own protocol can run. */
export interface HostedTool {
  /** The tool's type as the client wrote it. */
  readonly type: string;
  /** Path of the tool in the client's body. */
  readonly at: string;
}

/** The client's name for a tool that has another name or form at the upstream. */
export interface ClientTool {
  /** Null for a tool outside any namespace. */
  readonly namespace: string | null;
  readonly name: string;
  /**
   * The tool's type in the responses protocol if its calls are items of a type of their own. Null for functions and
   * custom tools.
   */
  readonly type: 'tool_search' | 'local_shell' | 'shell' | 'apply_patch' | null;
}

export type ToolChoice =
  | { readonly mode: 'none' | 'auto' | 'required' }
  /** The model must call this function. */
  | { readonly mode: 'named'; readonly name: string }
  /** The model may call only these. `required`: it must call one of them. */
  | { readonly mode: 'allowed'; readonly names: readonly string[]; readonly required: boolean };

export type OutputFormat =
  | { readonly kind: 'object' }
  | {
      readonly kind: 'schema';
      /** Null if the client's protocol has no such name. */
      readonly name: string | null;
      readonly description: string | null;
      readonly schema: JsonObject;
      readonly strict: boolean | null;
      /** The answer is a bare word, without the quotes of a JSON string. */
      readonly bare?: boolean | undefined;
    };

export const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;
export type Effort = (typeof efforts)[number];
/** An effort, or a lower-case word that only some vendors know. */
export type EffortWord = Effort | (string & {});

export interface Reasoning {
  /** Null: the upstream decides. */
  readonly effort: EffortWord | null;
  /** Number of tokens if the client gave one, else null. `effort` is then set as well. */
  readonly budget: number | null;
  /** The client's protocol can show reasoning, and the client asked for it. */
  readonly show: boolean;
  /** How much reasoning is shown, in the words of the responses protocol (`auto`, `concise`, `detailed`), or null. */
  readonly summary: string | null;
}

/** A client's request, independent of its protocol. Absent settings are null. */
export interface ConversationRequest {
  /** The client's protocol. Error messages name its fields. */
  readonly from: TextProtocolName;
  readonly stream: boolean;
  /** Members of the client's body that are not represented here, whatever the target is. */
  readonly leftOut: readonly string[];
  /** Instructions at the start of the conversation. Protocols with a single text join them with a blank line. */
  readonly system: readonly string[];
  /** Cache marks of the texts in `system`, by index. */
  readonly systemCache?: readonly (CacheMark | null)[] | undefined;
  readonly turns: readonly Turn[];
  readonly tools: readonly Tool[];
  /** Tools that answers of the responses protocol name differently, by their names in `tools`. */
  readonly clientTools?: ReadonlyMap<string, ClientTool> | undefined;
  readonly hostedTools: readonly HostedTool[];
  /** Web search that the upstream itself runs. Absent for none. */
  readonly search?: WebSearch | undefined;
  readonly toolChoice: ToolChoice | null;
  readonly parallelCalls: boolean | null;
  readonly format: OutputFormat | null;
  readonly reasoning: Reasoning | null;
  readonly maxTokens: number | null;
  readonly temperature: number | null;
  readonly topP: number | null;
  readonly topK: number | null;
  readonly stop: readonly string[];
  /** Number of requested answers. Default: 1. */
  readonly candidates: number;
  readonly seed: number | null;
  readonly presencePenalty: number | null;
  readonly frequencyPenalty: number | null;
  readonly logitBias: JsonObject | null;
  /** Number of alternatives per token, besides the chosen one. Null for no log probabilities. */
  readonly logprobs: number | null;
  readonly verbosity: string | null;
  /** Id of the end user. */
  readonly user: string | null;
  /** The member that holds this id, if it is not the first of its names in the client's protocol. */
  readonly userMember?: 'safety_identifier' | undefined;
  /**
   * Settings of how the call is served (prompt cache, tier, metadata), under the names that chat and responses share.
   * Absent if the client sets none.
   */
  readonly serving?: JsonObject | undefined;
  /** Whether the vendor may store the answer. Absent: the protocol's default. */
  readonly stored?: boolean | undefined;
  /**
   * Whether the client asked for encrypted reasoning, to return it with its next turn. Absent if its protocol has no
   * such option.
   */
  readonly returnsEncrypted?: boolean | undefined;
  /** The client asked for a stream's usage, or its protocol always reports it. */
  readonly includeUsage: boolean;
  /**
   * The client knows calls only in the older form of the chat protocol, `function_call`: one in an answer. Absent for
   * other protocols.
   */
  readonly functionForm?: boolean | undefined;
  /** Settings of a responses request, as the client sent them, which its answers repeat. Null for other protocols. */
  readonly echo: JsonObject | null;
  /**
   * The answer is a compaction of the conversation: an object or an item of the responses protocol, or a block of
   * messages.
   */
  readonly compaction: 'object' | 'item' | 'block' | null;
}
