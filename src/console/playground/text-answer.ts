import type { AssistantTurn } from './conversation.js';
import { numberOf, objectOf, textOf } from './json.js';

/** Characters of text, of reasoning, and of the arguments of a call that are kept; what is beyond is left out. */
const mostCharacters = 2_097_152;
/** Calls of tools that are kept. */
const mostCalls = 128;

/** Tokens of an answer. Cached ones are part of the input, and those for reasoning part of the output. */
export interface AnswerTokens {
  readonly input: number;
  readonly output: number;
  readonly cached: number;
  readonly reasoning: number;
}

export interface DraftCall {
  /** What later events call it by. */
  readonly key: string;
  id: string;
  name: string;
  /** JSON text. */
  arguments: string;
}

/** What has come of an answer so far, whichever protocol it came in. */
export interface TextAnswer {
  text: string;
  /** What the model showed of its thinking. */
  reasoning: string;
  calls: DraftCall[];
  /** Null where none were reported. */
  tokens: AnswerTokens | null;
  /** Why it ended, in the protocol's word. */
  finish: string | null;
  /** What went wrong inside the answer. */
  error: string | null;
}

/** Reads answers of a protocol into a draft. */
export interface AnswerReader {
  /** Adds what the data of a stream's event says, parsed. */
  event(answer: TextAnswer, data: unknown): void;
  /** Adds a whole answer, parsed. */
  whole(answer: TextAnswer, body: unknown): void;
}

export function emptyAnswer(): TextAnswer {
  return { text: '', reasoning: '', calls: [], tokens: null, finish: null, error: null };
}

/** True as soon as there is something to show. */
export function hasBegun({ text, reasoning, calls }: TextAnswer): boolean {
  return text !== '' || reasoning !== '' || calls.length > 0;
}

/** The answer as the conversation goes on from it. */
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
 * The call of a key, made where there is none yet.
 * @returns null when there are too many
 */
export function callOf(answer: TextAnswer, key: string): DraftCall | null {
  const found = answer.calls.find((call) => call.key === key);
  if (found !== undefined || answer.calls.length >= mostCalls) return found ?? null;
  const call: DraftCall = { key, id: '', name: '', arguments: '' };
  answer.calls.push(call);
  return call;
}

/** Names a call; what is empty says nothing. */
export function nameCall(call: DraftCall | null, id: unknown, name: unknown): void {
  if (call === null) return;
  call.id = textOf(id) || call.id;
  call.name = textOf(name) || call.name;
}

/** The tokens as chat and responses report them, under names of their own. */
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
  return text.length + more.length <= mostCharacters
    ? text + more
    : text + more.slice(0, mostCharacters - text.length);
}
