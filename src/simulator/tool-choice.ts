import { isObject } from './json.js';
import type { Prompt, Tool } from './prompt.js';
import { schemaExample } from './schema-example.js';
import { clip } from './tokens.js';

const longestFill = 200;
/** Words of function names that say nothing about what a function is for. */
const plainWords = new Set(
  'get set find search list create make do fetch lookup look up run call use show tell the a an by for of to in on at and or with from my new current tool function'.split(
    ' ',
  ),
);

/** The tools that the answer calls: those that are forced, or that the last user text clearly asks for. */
export function chooseTools(prompt: Prompt): readonly Tool[] {
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

/** Whether a text names a function, or says a telling word of its name: "weather" for `get_weather`. */
export function invites(text: string, name: string): boolean {
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

/** The input of a call: JSON text that fits the tool's parameters, filled from the user's words where that is sensible. */
export function toolInput(tool: Tool, prompt: Prompt): string {
  const text = prompt.plainText;
  if (tool.custom) {
    return clip(text, longestFill) || 'simulated';
  }
  const numbers = (text.match(/-?\d+(?:\.\d+)?/g) ?? []).slice(0, 4).map(Number);
  const filled = phrase(text);
  const example = schemaExample(tool.parameters ?? { type: 'object' }, { text: () => filled, numbers });
  return JSON.stringify(isObject(example) ? example : {});
}

/** What a text is about: what stands in quotes, or the name after a preposition ("in New York"), or all of it. */
function phrase(text: string): string {
  const head = text.slice(0, 4_000);
  const quoted = /"([^"]{1,200})"/.exec(head)?.[1];
  const named =
    /\b(?:in|for|at|near|from|to|of|about|called|named)\s+(\p{Lu}[\p{L}\p{N}'-]*(?:\s+\p{Lu}[\p{L}\p{N}'-]*)*)/u.exec(
      head,
    )?.[1];
  return clip(quoted ?? named ?? text, longestFill);
}
