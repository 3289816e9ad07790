import { type Directive, directiveError, directiveValue, findDirective } from '../faults/directives.js';
import { isObject } from '../http/json.js';
import type { Answer, Prompt, Tool, ToolCall } from './prompt.js';
import { schemaExample } from './schema-example.js';
import { clip, countTokens, firstTokens } from './tokens.js';

const longestFill = 200;
/** Words of function names that do not show the function's purpose. */
const plainWords = new Set(
  'get set find search list create make do fetch lookup look up run call use show tell the a an by for of to in on at and or with from my new current tool function'.split(
    ' ',
  ),
);

/** The tools that the answer calls: those that are forced, or that the last user text clearly requests. */
function chooseTools(prompt: Prompt): readonly Tool[] {
  const { tools, toolChoice } = prompt;
  if (toolChoice.mode === 'none' || tools.length === 0 || prompt.toolResults.length > 0) {
    return [];
  }
  if (toolChoice.mode === 'named') {
    return tools.filter((tool) => tool.name === toolChoice.name).slice(0, 1);
  }
  const invited = tools.filter((tool) => invites(prompt.plainText, tool.name));
  const chosen = invited.length === 0 && toolChoice.mode === 'required' ? tools.slice(0, 1) : invited;
  return prompt.parallelCalls ? chosen : chosen.slice(0, 1);
}

/** Whether a text contains the name of a function, or a distinctive word of it: "weather" for `get_weather`. */
function invites(text: string, name: string): boolean {
  const parts = wordsOf(name);
  const telling = parts.filter((part) => part.length > 2 && !plainWords.has(part));
  const heard = new Set(wordsOf(text));
  const isHeard = (word: string): boolean => heard.has(word) || heard.has(`${word}s`);
  return (
    text.toLowerCase().includes(name.toLowerCase()) ||
    (telling.length === 0 ? parts.every(isHeard) : telling.some(isHeard))
  );
}

function wordsOf(text: string): string[] {
  const spaced = text.replace(/([\p{Ll}\d])(\p{Lu})/gu, '$1 $2').toLowerCase();
  return spaced.match(/[\p{L}\p{N}]+/gu) ?? [];
}

/** The input of a call: JSON that satisfies the tool's parameters, filled from the user's words where possible. */
function toolInput(tool: Tool, prompt: Prompt): string {
  const text = prompt.plainText;
  if (tool.custom) {
    return clip(text, longestFill) || 'simulated';
  }
  const numbers = (text.match(/-?\d+(?:\.\d+)?/g) ?? []).slice(0, 4).map(Number);
  const filled = phrase(text);
  const example = schemaExample(tool.parameters ?? { type: 'object' }, { text: () => filled, numbers });
  return JSON.stringify(isObject(example) ? example : {});
}

/** The topic of a text: the quoted part, else the name after a preposition ("in New York"), else all of it. */
function phrase(text: string): string {
  const head = text.slice(0, 4_000);
  const quoted = /"([^"]{1,200})"/.exec(head)?.[1];
  const named =
    /\b(?:in|for|at|near|from|to|of|about|called|named)\s+(\p{Lu}[\p{L}\p{N}'-]*(?:\s+\p{Lu}[\p{L}\p{N}'-]*)*)/u.exec(
      head,
    )?.[1];
  return clip(quoted ?? named ?? text, longestFill);
}

const maxLongTokens = 1_000_000;

/**
 * Composes the answer to a prompt, always the same for the same prompt.
 * @param index number among several answers; all except the first contain it.
 */
export function composeAnswer(prompt: Prompt, index: number): Answer {
  const { directives } = prompt;
  const refuses = findDirective(directives, 'refuse') !== undefined;
  const chosen = refuses ? [] : chooseTools(prompt);
  const reasoning =
    prompt.reasoning === null
      ? ''
      : `Simulated reasoning (${prompt.reasoning}) about: ${clip(prompt.plainText, 200)}`;
  const spoken = refuses || chosen.length > 0 ? '' : content(prompt, index);
  const { text, stopSequence } = beforeStop(spoken, prompt.stop);
  const refusal = refuses ? `Simulated refusal of: ${clip(prompt.plainText, 200)}` : '';
  const budget = { left: prompt.maxTokens, cut: false };
  const keptReasoning = spend(budget, reasoning);
  const keptText = spend(budget, text);
  const keptRefusal = spend(budget, refusal);
  const empty = findDirective(directives, 'zero-args') !== undefined;
  const calls: ToolCall[] = [];
  for (const [position, tool] of chosen.entries()) {
    const input = empty ? '' : spend(budget, toolInput(tool, prompt));
    if (empty || input !== '') {
      const id = `call_${prompt.digest.slice(0, 20)}${index}x${position}`;
      calls.push({ id, name: tool.name, input, custom: tool.custom });
    }
  }
  const written = [keptReasoning, keptText, keptRefusal, ...calls.map((call) => call.input)];
  return {
    reasoning: keptReasoning,
    text: keptText,
    refusal: keptRefusal,
    calls,
    callDelivery: callDelivery(directives),
    finish: budget.cut ? 'length' : chosen.length > 0 ? 'tools' : 'stop',
    stopSequence: budget.cut ? null : stopSequence,
    finishWord: findDirective(directives, 'finish')?.value || null,
    reasoningTokens: countTokens(keptReasoning),
    outputTokens: written.reduce((sum, part) => sum + countTokens(part), 0),
  };
}

function callDelivery(directives: readonly Directive[]): Answer['callDelivery'] {
  if (findDirective(directives, 'args-at-once') !== undefined) {
    return 'at-once';
  }
  return findDirective(directives, 'interleave') === undefined ? 'pieces' : 'interleaved';
}

function content(prompt: Prompt, index: number): string {
  switch (prompt.format.kind) {
    case 'schema':
      return JSON.stringify(structured(prompt, prompt.format.schema)) ?? 'null';
    case 'object':
      return JSON.stringify({ simulated: true, answer: sentence(prompt) });
    case 'text':
      return lengthened(prompt, index === 0 ? sentence(prompt) : `${sentence(prompt)} (answer ${index + 1})`);
  }
}

function sentence(prompt: Prompt): string {
  const seen = prompt.images === 0 ? '' : ` (${prompt.images} image${prompt.images === 1 ? '' : 's'})`;
  const results = prompt.toolResults.map((result) => `\nTool result: ${result}`).join('');
  const recalled = prompt.recalled === undefined ? '' : `\nRecalled: ${prompt.recalled}`;
  return `Simulated answer to: ${prompt.text}${seen}${results}${recalled}`;
}

function structured(prompt: Prompt, schema: unknown): unknown {
  const text = clip(`Simulated answer to: ${prompt.plainText}`, 400);
  return schemaExample(schema, { text: () => text, numbers: [] }) ?? null;
}

/** Extends a text to the length of the directive `long`. */
function lengthened(prompt: Prompt, text: string): string {
  const long = findDirective(prompt.directives, 'long');
  if (long === undefined) {
    return text;
  }
  const tokens = directiveValue(long, 'long', 100);
  if (tokens > maxLongTokens) {
    throw directiveError(`"long" goes up to ${maxLongTokens} tokens.`);
  }
  const filler = ' simulated words';
  const missing = Math.max(0, tokens - countTokens(text));
  return text + filler.repeat(Math.ceil(missing / countTokens(filler)));
}

function beforeStop(text: string, stop: readonly string[]): { text: string; stopSequence: string | null } {
  let end = text.length;
  let stopSequence: string | null = null;
  for (const sequence of stop) {
    const at = text.indexOf(sequence);
    if (at >= 0 && at < end) {
      end = at;
      stopSequence = sequence;
    }
  }
  return { text: text.slice(0, end), stopSequence };
}

function spend(budget: { left: number; cut: boolean }, text: string): string {
  const kept = countTokens(text) <= budget.left ? text : firstTokens(text, budget.left);
  budget.cut ||= kept !== text;
  budget.left -= countTokens(kept);
  return kept;
}
