import { type Directive, textDirectives } from '../faults/directives.js';
import { countTokens } from './tokens.js';

/** A tool that the model may call. */
export interface Tool {
  readonly name: string;
  /** JSON Schema of the arguments; null for a tool that takes free text. */
  readonly parameters: unknown;
  /** Whether its input is text instead of a JSON object. */
  readonly custom: boolean;
}

export type ToolChoice =
  | { readonly mode: 'none' | 'auto' | 'required' }
  | { readonly mode: 'named'; readonly name: string };

export type OutputFormat =
  | { readonly kind: 'text' | 'object' }
  | { readonly kind: 'schema'; readonly schema: unknown };

/** A request of a text protocol, independent of the protocol. */
export interface Prompt {
  /** The last user text, unchanged. */
  readonly text: string;
  /** The same without the directives at its start. */
  readonly plainText: string;
  readonly directives: readonly Directive[];
  readonly images: number;
  /** Texts of the tool results that end the conversation. */
  readonly toolResults: readonly string[];
  readonly tools: readonly Tool[];
  readonly toolChoice: ToolChoice;
  readonly parallelCalls: boolean;
  readonly format: OutputFormat;
  /** Reasoning effort in the protocol's words, or null. */
  readonly reasoning: string | null;
  readonly maxTokens: number;
  readonly stop: readonly string[];
  readonly inputTokens: number;
  /** Topic of a compacted part of the conversation, if there is one. */
  readonly recalled?: string;
  /** Hexadecimal digest of the body, from which ids are made. */
  readonly digest: string;
}

/**
 * Reads the last user text.
 * @param directives directives of the header
 */
export function saidBy(
  text: string,
  directives: readonly Directive[],
): Pick<Prompt, 'text' | 'plainText' | 'directives'> {
  const said = textDirectives(text);
  return { text, plainText: said.rest, directives: [...directives, ...said.directives] };
}

/** The tokens that describe the tools. */
export function toolTokens(tools: readonly Tool[]): number {
  return tools.reduce(
    (sum, { name, parameters }) => sum + countTokens(name + JSON.stringify(parameters ?? {})),
    0,
  );
}

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON text, or the free text of a custom tool. */
  readonly input: string;
  readonly custom: boolean;
}

/** An answer of the simulator, independent of the protocol. */
export interface Answer {
  readonly reasoning: string;
  readonly text: string;
  /** Refusal in place of a text, or an empty string. */
  readonly refusal: string;
  readonly calls: readonly ToolCall[];
  /** How a stream delivers the inputs of calls: in pieces, whole, or in interleaved pieces. */
  readonly callDelivery: 'pieces' | 'at-once' | 'interleaved';
  readonly finish: 'stop' | 'length' | 'tools';
  /** The stop sequence that ended the text. */
  readonly stopSequence: string | null;
  /** The protocol's finish reason, if a directive names one. */
  readonly finishWord: string | null;
  readonly reasoningTokens: number;
  /** All tokens of the answer, including reasoning. */
  readonly outputTokens: number;
}
