import { isObject } from './json.js';
import { OpenAiError } from './openai-error.js';
import { type Item, openSeal } from './responses-items.js';
import { countTokens } from './tokens.js';

const tokensPerMedia = 85;

/** What the conversation says to a model. */
export interface Conversation {
  /** The last text of the user. */
  readonly text: string;
  readonly images: number;
  readonly toolResults: readonly string[];
  /** What the compacted parts were about. */
  readonly recalled: string | undefined;
  readonly tokens: number;
}

/**
 * Checks what the items owe each other: every output has its call before it and every call its output, and reasoning
 * stands before what it led to.
 * @throws OpenAiError
 */
export function checkHistory(items: readonly Item[]): void {
  const calls = new Map<string, Item>();
  const outputs = new Set<string>();
  for (const [index, item] of items.entries()) {
    const id = String(item.value.call_id);
    switch (item.type) {
      case 'function_call':
      case 'custom_tool_call':
        calls.set(id, item);
        break;
      case 'function_call_output':
      case 'custom_tool_call_output':
        if (calls.get(id)?.type !== item.type.replace('_output', '')) {
          const what = item.type.replaceAll('_', ' ');
          throw refuse(`No tool call found for ${what} with call_id ${id}.`);
        }
        outputs.add(id);
        break;
      case 'reasoning':
        checkFollowed(item, items[index + 1]);
    }
  }
  for (const [id, { type }] of calls) {
    if (!outputs.has(id)) {
      const what = type === 'function_call' ? 'function call' : 'custom tool call';
      throw refuse(`No tool output found for ${what} ${id}.`);
    }
  }
}

function refuse(message: string): OpenAiError {
  return new OpenAiError(400, message, 'input', null);
}

function checkFollowed({ value }: Item, next: Item | undefined): void {
  const ofUser = next?.type === 'message' && next.value.role !== 'assistant';
  if (next === undefined || ofUser || next.type.endsWith('_output')) {
    throw refuse(
      `Item '${String(value.id)}' of type 'reasoning' was provided without its required following item.`,
    );
  }
}

/** Reads what checked items say. */
export function readConversation(items: readonly Item[]): Conversation {
  const messages = items.filter(({ type }) => type === 'message');
  const last =
    messages.findLast(({ value }) => value.role === 'user') ??
    messages.findLast(({ value }) => value.role !== 'assistant');
  const compacted = items
    .filter(({ type }) => type.startsWith('compaction') && type !== 'compaction_trigger')
    .map(({ value }) => openSeal('compaction', String(value.encrypted_content)));
  return {
    text: last === undefined ? '' : contentText(last.value.content),
    images: last === undefined ? 0 : mediaIn(last.value.content, 'input_image'),
    toolResults: trailingResults(items),
    recalled: compacted.length === 0 ? undefined : compacted.join('\n'),
    tokens:
      compacted.reduce((sum, text) => sum + countTokens(text), 0) +
      items.reduce((sum, item) => sum + tokensOf(item), 0),
  };
}

function partsOf(content: unknown): Record<string, unknown>[] {
  return Array.isArray(content) ? content.filter(isObject) : [];
}

function contentText(content: unknown): string {
  if (typeof content === 'string') {
    return content;
  }
  return partsOf(content)
    .flatMap(({ text, refusal }) => [text, refusal].filter((each) => typeof each === 'string'))
    .join('\n');
}

function mediaIn(content: unknown, ...types: readonly string[]): number {
  return partsOf(content).filter(({ type }) => types.includes(String(type))).length;
}

/** The outputs since somebody last said something, if the conversation ends with one. */
function trailingResults(items: readonly Item[]): readonly string[] {
  if (items.at(-1)?.type.endsWith('_output') !== true) {
    return [];
  }
  const said = items.findLastIndex(({ type }) => type === 'message');
  return items
    .slice(said + 1)
    .filter(({ type }) => type.endsWith('_output'))
    .map(({ value }) => contentText(value.output));
}

function tokensOf({ value }: Item): number {
  const content = value.content ?? value.output;
  const call = String(value.name ?? '') + String(value.arguments ?? value.input ?? '');
  return (
    countTokens(contentText(content)) +
    countTokens(call) +
    mediaIn(content, 'input_image', 'input_file') * tokensPerMedia
  );
}
