import type { JsonObject } from '../wire/json.js';
import type { WebSearch } from './web-search.js';

/** The protocols between which a conversation can be translated. */
export const textProtocols = ['chat', 'responses', 'messages', 'generateContent'] as const;
export type TextProtocolName = (typeof textProtocols)[number];

/** Bytes of a medium, or where they are. */
export type MediaSource =
  | {
      readonly kind: 'data';
      /** `image/png` and the like, lower-case; `application/octet-stream` where the protocol did not say. */
      readonly mediaType: string;
      /** Base64 without a `data:` prefix. */
      readonly data: string;
    }
  | { readonly kind: 'url'; readonly url: string; readonly mediaType: string | null };

/** The upstream's prompt cache is to keep the prompt up to the end of what bears this. */
export interface CacheMark {
  /** For how long; null for as long as the upstream thinks fit. */
  readonly ttl: '5m' | '1h' | null;
  /** What its client calls it; `cache_control` where it is absent. */
  readonly name?: 'prompt_cache_breakpoint';
}

export interface Cacheable {
  readonly cache?: CacheMark | undefined;
}

export interface TextPart extends Cacheable {
  readonly kind: 'text';
  readonly text: string;
}

/** An image, a document, a sound or a film. */
export interface MediaPart extends Cacheable {
  readonly kind: 'image' | 'document' | 'audio' | 'video';
  readonly source: MediaSource;
  /** Resolution that is asked for (`low`, `high`, …), or null. Images alone. */
  readonly detail: string | null;
  /** File name of a document, or null. */
  readonly name: string | null;
  /** Where it stands in the client's body (`messages[2].content[0]`), for a refusal. */
  readonly at: string;
}

/** What a tool call gave. */
export interface ToolResultPart extends Cacheable {
  readonly kind: 'toolResult';
  /** Empty where a result names none and fits none: `fit/tool-results.ts` makes it a text. */
  readonly callId: string;
  /** Name of the tool that was called; empty where neither the protocol nor the conversation says. */
  readonly name: string;
  readonly content: readonly ContentPart[];
  readonly isError: boolean;
  readonly at: string;
}

export interface ToolCallPart extends Cacheable {
  readonly kind: 'toolCall';
  /** Empty where an upstream gave none: encoders of answers make one. */
  readonly id: string;
  readonly name: string;
  /** JSON text of the arguments (never empty: `{}` for none), or the free text of a custom tool. */
  readonly input: string;
  /** A tool that takes free text. */
  readonly custom: boolean;
  /** Of an answer to a chat client: signatures that stand beside the call, where its id cannot carry them. */
  readonly signature?: string | undefined;
  readonly at: string;
}

/** Reasoning that a model wrote before it answered. */
export interface ReasoningPart {
  readonly kind: 'reasoning';
  /** Empty where only its signature is there. */
  readonly text: string;
  /** The token of `signature.ts` as the client carries it, or null. */
  readonly signature: string | null;
}

export interface RefusalPart extends Cacheable {
  readonly kind: 'refusal';
  readonly text: string;
}

/** What a user says, and what a tool gives. */
export type ContentPart = TextPart | MediaPart;
export type UserPart = ContentPart | ToolResultPart;
export type AssistantPart = TextPart | RefusalPart | ToolCallPart | ReasoningPart | MediaPart;

/**
 * One turn. Adjacent turns of one role are allowed; encoders merge them where their protocol asks for it. Tool results
 * stand in user turns, before any other part of the turn.
 */
export type Turn =
  /** Instructions in the middle of a conversation; those at its start are in `system`. */
  | { readonly role: 'system'; readonly text: string; readonly cache?: CacheMark | undefined }
  | { readonly role: 'user'; readonly parts: readonly UserPart[] }
  | { readonly role: 'assistant'; readonly parts: readonly AssistantPart[] };

export interface Tool extends Cacheable {
  readonly name: string;
  readonly description: string | null;
  /** JSON Schema of the arguments; null where the client gave none. */
  readonly parameters: JsonObject | null;
  readonly strict: boolean | null;
  /** A tool that takes free text: its `format` as responses spells it (flat), or null for plain text. Else undefined. */
  readonly custom?: { readonly format: JsonObject | null } | undefined;
}

/** A tool that only an upstream of the client's own protocol can run. */
export interface HostedTool {
  /** As the client spells it. */
  readonly type: string;
  /** Path of it in the client's body. */
  readonly at: string;
}

/** What a client calls a tool that has another name or form at the upstream. */
export interface ClientTool {
  /** Null for one that stands in no namespace. */
  readonly namespace: string | null;
  readonly name: string;
  /** Type of the responses protocol whose calls are items of their own; null for a function or a custom tool. */
  readonly type: 'tool_search' | 'local_shell' | 'shell' | 'apply_patch' | null;
}

export type ToolChoice =
  | { readonly mode: 'none' | 'auto' | 'required' }
  /** The one function to call. */
  | { readonly mode: 'named'; readonly name: string }
  /** Only these may be called; `required`: one of them must. */
  | { readonly mode: 'allowed'; readonly names: readonly string[]; readonly required: boolean };

export type OutputFormat =
  | { readonly kind: 'object' }
  | {
      readonly kind: 'schema';
      /** Null where the client's protocol has none. */
      readonly name: string | null;
      readonly description: string | null;
      readonly schema: JsonObject;
      readonly strict: boolean | null;
      /** The answer is a word, without the quotes of a JSON string. */
      readonly bare?: boolean | undefined;
    };

export const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;
export type Effort = (typeof efforts)[number];
/** An effort, or a word in lower case that only some vendor knows. */
export type EffortWord = Effort | (string & {});

export interface Reasoning {
  /** Null: as much as the upstream thinks fit. */
  readonly effort: EffortWord | null;
  /** Tokens, where the client named a number, else null. `effort` is set beside it. */
  readonly budget: number | null;
  /** The client's protocol shows reasoning to the client, and the client asked for it. */
  readonly show: boolean;
  /** Word of the responses protocol for how much is shown (`auto`, `concise`, `detailed`), or null. */
  readonly summary: string | null;
}

/** What a client asks for, apart from how its protocol words it. Absent settings are null. */
export interface ConversationRequest {
  /** The client's protocol: refusals name its fields. */
  readonly from: TextProtocolName;
  readonly stream: boolean;
  /** Members of the client's body that are not in here, whatever the target is. */
  readonly leftOut: readonly string[];
  /** Texts at the start of the conversation that instruct the model; protocols with one text join them by a blank line. */
  readonly system: readonly string[];
  /** Marks of these texts, each at the place of its text. */
  readonly systemCache?: readonly (CacheMark | null)[] | undefined;
  readonly turns: readonly Turn[];
  readonly tools: readonly Tool[];
  /** By the names of `tools`: those that the responses protocol's answers name in another way. */
  readonly clientTools?: ReadonlyMap<string, ClientTool> | undefined;
  readonly hostedTools: readonly HostedTool[];
  /** The search of the web that the upstream itself is to run; absent for none. */
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
  /** Answers asked for; 1 unless the client said more. */
  readonly candidates: number;
  readonly seed: number | null;
  readonly presencePenalty: number | null;
  readonly frequencyPenalty: number | null;
  readonly logitBias: JsonObject | null;
  /** Alternatives for each token beside the chosen one (0 for none), or null for no log probabilities. */
  readonly logprobs: number | null;
  readonly verbosity: string | null;
  /** The end user's id. */
  readonly user: string | null;
  /**
   * How the call is to be served (prompt cache, tier, metadata), by the names that chat and responses both have for it;
   * absent where the client says nothing of it.
   */
  readonly serving?: JsonObject | undefined;
  /** Whether the vendor may keep the answer; absent where the client leaves that to the protocol. */
  readonly stored?: boolean | undefined;
  /**
   * Whether the client asked for reasoning in encrypted form, to return it with its next turn; absent where its protocol
   * has no such wish.
   */
  readonly returnsEncrypted?: boolean | undefined;
  /** The client asked for the usage of a stream, or its protocol always has it. */
  readonly includeUsage: boolean;
  /** What the client's protocol repeats in its answers, as the client sent it: settings of responses; else null. */
  readonly echo: JsonObject | null;
  /** The answer is to be a compaction of the conversation: the responses protocol's object or its item, or messages' block. */
  readonly compaction: 'object' | 'item' | 'block' | null;
}
