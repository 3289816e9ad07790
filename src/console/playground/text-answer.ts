import type { AssistantTurn } from './conversation.js';
import { numberOf, objectOf, textOf } from './json.js';

/** Most characters kept of the text, of the reasoning, and of the arguments of each call. */
const maxCharacters = 2_097_152;
/** Most tool calls kept. */
const maxCalls = 128;

/** Tokens of an answer. Input includes cached tokens, and output includes reasoning. */
export interface AnswerTokens {
  readonly input: number;
  readonly output: number;
  readonly cached: number;
  readonly reasoning: number;
}

export interface DraftCall {
  /** Identifier of the call in later events. */
  readonly key: string;
  id: string;
  name: string;
  /** JSON text. */
  arguments: string;
}

/** The received part of an answer, independent of the protocol. */
export interface TextAnswer {
  text: string;
  /** The visible reasoning. */
  reasoning: string;
  calls: DraftCall[];
  /** Null if not reported. */
  tokens: AnswerTokens | null;
  /** The protocol's finish reason. */
  finish: string | null;
  /** The error inside the answer. */
  error: string | null;
}

/** Reads answers of a protocol into a draft. */
export interface AnswerReader {
  /** Adds the parsed data of a stream's event. */
  event(answer: TextAnswer, data: unknown): void;
  /** Adds a whole answer, parsed. */
  whole(answer: TextAnswer, body: unknown): void;
}

export function emptyAnswer(): TextAnswer {
  return { text: '', reasoning: '', calls: [], tokens: null, finish: null, error: null };
}

/** Whether there is something to show. */
export function hasBegun({ text, reasoning, calls }: TextAnswer): boolean {
  return text !== '' || reasoning !== '' || calls.length > 0;
}

/** The answer as a turn of the conversation. */
export function turnOf({ text, calls }: TextAnswer): AssistantTurn {
  return {
    role: 'assistant',
    text,
    calls: calls.map((call) => ({ id: call.id, name: call.name, arguments: call.arguments || '{}' })),
  };
}

export function addText(answer: TextAnswer, piece: unknown): void {
  answer.text = joined(answer.text, piece);
}

export function addReasoning(answer: TextAnswer, piece: unknown): void {
  answer.reasoning = joined(answer.reasoning, piece);
}

export function addArguments(call: DraftCall | null, piece: unknown): void {
  if (call !== null) call.arguments = joined(call.arguments, piece);
}

/**
 * Returns the call of a key, and creates it if needed.
 * @returns null if there are too many
 */
export function callOf(answer: TextAnswer, key: string): DraftCall | null {
  const found = answer.calls.find((call) => call.key === key);
  if (found !== undefined || answer.calls.length >= maxCalls) return found ?? null;
  const call: DraftCall = { key, id: '', name: '', arguments: '' };
  answer.calls.push(call);
  return call;
}

/** Sets the id and name of a call; empty values are ignored. */
export function nameCall(call: DraftCall | null, id: unknown, name: unknown): void {
  if (call === null) return;
  call.id = textOf(id) || call.id;
  call.name = textOf(name) || call.name;
}

/** Reads the tokens as reported by chat and responses, which differ in names. */
export function openAiTokens(
  usage: unknown,
  names: { readonly input: string; readonly output: string },
): AnswerTokens {
  const said = objectOf(usage);
  return {
    input: numberOf(said[`${names.input}_tokens`]),
    output: numberOf(said[`${names.output}_tokens`]),
    cached: numberOf(objectOf(said[`${names.input}_tokens_details`]).cached_tokens),
    reasoning: numberOf(objectOf(said[`${names.output}_tokens_details`]).reasoning_tokens),
  };
}

function joined(text: string, piece: unknown): string {
  const more = textOf(piece);
  return text.length + more.length <= maxCharacters
    ? text + more
    : text + more.slice(0, maxCharacters - text.length);
}
