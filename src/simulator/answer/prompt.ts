import { type Directive, textDirectives } from '../faults/directives.js';
import { countTokens } from './tokens.js';

/** A tool that the model may call. */
export interface Tool {
  readonly name: string;
  /** JSON Schema of the arguments; null for a tool that takes free text. */
  readonly parameters: unknown;
  /** Whether its input is a text, not a JSON object. */
  readonly custom: boolean;
}

export type ToolChoice =
  | { readonly mode: 'none' | 'auto' | 'required' }
  | { readonly mode: 'named'; readonly name: string };

export type OutputFormat =
  | { readonly kind: 'text' | 'object' }
  | { readonly kind: 'schema'; readonly schema: unknown };

/** What a text protocol asks of the simulator, apart from how the protocol words it. */
export interface Prompt {
  /** The last user text as it came. */
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
  /** Effort of reasoning in the protocol's word, or null for none. */
  readonly reasoning: string | null;
  readonly maxTokens: number;
  readonly stop: readonly string[];
  readonly inputTokens: number;
  /** What a compacted part of the conversation was about, where there is one. */
  readonly recalled?: string;
  /** Hexadecimal digest of the body: what ids are made from. */
  readonly digest: string;
}

/**
 * What the last text of a user says to the simulator.
 * @param directives from the header
 */
export function saidBy(
  text: string,
  directives: readonly Directive[],
): Pick<Prompt, 'text' | 'plainText' | 'directives'> {
  const said = textDirectives(text);
  return { text, plainText: said.rest, directives: [...directives, ...said.directives] };
}

/** What it takes to describe the tools. */
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

/** What the simulator says, apart from how a protocol words it. */
export interface Answer {
  readonly reasoning: string;
  readonly text: string;
  /** What it says in place of a text, or an empty string. */
  readonly refusal: string;
  readonly calls: readonly ToolCall[];
  /** How a stream brings the input of the calls: in pieces, whole, or in pieces that take turns. */
  readonly callDelivery: 'pieces' | 'at-once' | 'interleaved';
  readonly finish: 'stop' | 'length' | 'tools';
  /** The stop sequence that ended the text. */
  readonly stopSequence: string | null;
  /** The protocol's word for the end where the request names one. */
  readonly finishWord: string | null;
  readonly reasoningTokens: number;
  /** All tokens of the answer, with those of the reasoning. */
  readonly outputTokens: number;
}
