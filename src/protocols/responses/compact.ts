import { isObject, type JsonObject, parseObject } from '../../wire/json.js';
import type { Sealer } from '../../wire/seal.js';
import { messageId } from './output.js';

/*
 * An upstream of another protocol has no compactions. The model is asked for a summary instead
 * (`conversation/compaction.ts`), which the client carries sealed and sends back in place of the turns.
 */

const kind = 'compaction';
const introduction = 'Summary of the conversation so far:\n\n';

/** Seals a summary for the client to carry. */
export function sealSummary(summary: string, sealer: Sealer): string {
  return sealer.seal(JSON.stringify({ kind, summary }));
}

/** Tells whether an item is the compaction of a conversation. Some clients call it a summary. */
export function isCompaction({ type }: JsonObject): boolean {
  return type === 'compaction' || type === 'compaction_summary';
}

/** Returns the text that replaces the turns of a compaction item; null for a compaction that was not made here. */
export function openCompaction({ encrypted_content: sealed }: JsonObject, sealer: Sealer): string | null {
  const opened = typeof sealed === 'string' ? sealer.open(sealed) : null;
  const content = opened === null ? null : parseObject(opened);
  if (content?.kind !== kind || typeof content.summary !== 'string') return null;
  return introduction + content.summary;
}

/* A compaction of a conversation begins with the user's last messages, word for word. The summary follows. */

/** Most characters of these messages, as JSON. */
const mostKept = 20_000;

/**
 * Returns the contents of the user's last messages as JSON texts, the earliest first.
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
    if (characters > mostKept) break;
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
 * Returns the items of an answer for contents that were kept.
 * @param contents the result of `keptContents`
 * @param id of the answer
 */
export function keptItems(contents: unknown, id: string): string[] {
  if (!Array.isArray(contents)) return [];
  return contents.map(
    (content, index) =>
      `{"id":"${messageId(id, index, index === 0)}","type":"message","status":"completed","role":"user","content":${content}}`,
  );
}
