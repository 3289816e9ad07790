import { createHash } from 'node:crypto';
import { type Prompt, saidBy, toolTokens } from '../answer/prompt.js';
import { countTokens } from '../answer/tokens.js';
import type { Item } from './items.js';
import type { TurnSettings } from './settings.js';

const tokensPerImage = 85;
const msPerToken = 100;

/** The input tokens of a turn, as in its usage. */
export interface InputTokens {
  readonly text: number;
  readonly audio: number;
  readonly image: number;
}

/**
 * Converts items to a prompt.
 * @param turn the id of the response, from which ids are made
 */
export function promptOf(items: readonly Item[], settings: TurnSettings, turn: string): Prompt {
  const last =
    items.findLast(({ role }) => role === 'user') ?? items.findLast(({ role }) => role === 'system');
  const text = last?.text ?? settings.instructions;
  const tokens = inputTokens(items, settings);
  return {
    ...saidBy(text, []),
    images: last?.images ?? 0,
    toolResults: trailingResults(items),
    tools: settings.tools,
    toolChoice: settings.toolChoice,
    parallelCalls: true,
    format: { kind: 'text' },
    reasoning: null,
    maxTokens: settings.maxTokens,
    stop: [],
    inputTokens: tokens.text + tokens.audio + tokens.image,
    digest: createHash('sha256').update(turn).update('\0').update(text).digest('hex'),
  };
}

/** The tokens of a turn's input by kind. */
export function inputTokens(items: readonly Item[], { instructions, tools }: TurnSettings): InputTokens {
  const written = items.filter(({ audioMs }) => audioMs === 0).map(({ text }) => text);
  return {
    text: [instructions, ...written].reduce((sum, each) => sum + countTokens(each), toolTokens(tools)),
    audio: items.reduce((sum, { audioMs }) => sum + Math.ceil(audioMs / msPerToken), 0),
    image: items.reduce((sum, { images }) => sum + images * tokensPerImage, 0),
  };
}

/** The call outputs since the last message, if the conversation ends with one. */
function trailingResults(items: readonly Item[]): readonly string[] {
  const said = items.findLastIndex(({ type }) => type === 'message');
  return items.at(-1)?.type === 'function_call_output'
    ? items
        .slice(said + 1)
        .filter(({ type }) => type === 'function_call_output')
        .map(({ text }) => text)
    : [];
}
