import { isObject, type JsonObject } from '../../conversation/json.js';
import { messageId } from './output.js';

/*
 * A compaction of a conversation begins with the last things that the user said, word for word: the summary comes
 * after them.
 */

/** Most characters of them, as JSON. */
const mostCharacters = 20_000;

/**
 * The contents of the last messages of the user, as JSON texts, from the first of them to the last.
 * @param input a client's, which has been decoded
 */
export function keptContents(input: unknown): string[] {
  const items: readonly unknown[] = Array.isArray(input) ? input : [{ role: 'user', content: input }];
  const kept: string[] = [];
  let characters = 0;
  for (let index = items.length - 1; index >= 0; index--) {
    const item = items[index];
    if (!isObject(item) || !isUserMessage(item)) continue;
    const content = contentText(item.content);
    characters += content.length;
    if (characters > mostCharacters) break;
    kept.push(content);
  }
  return kept.reverse();
}

function isUserMessage({ type, role }: JsonObject): boolean {
  return role === 'user' && (type === 'message' || type === undefined || type === null);
}

function contentText(content: unknown): string {
  return JSON.stringify(typeof content === 'string' ? [{ type: 'input_text', text: content }] : content);
}

/**
 * The items of an answer for contents that were kept.
 * @param contents what `keptContents` gave
 * @param id of the answer
 */
export function keptItems(contents: unknown, id: string): string[] {
  if (!Array.isArray(contents)) return [];
  return contents.map(
    (content, index) =>
      `{"id":"${messageId(id, index, index === 0)}","type":"message","status":"completed","role":"user","content":${content}}`,
  );
}
