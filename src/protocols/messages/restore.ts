import { carryingMark, withBareId } from '../../conversation/carrying-id.js';
import type { TargetOptions } from '../../conversation/codec.js';
import { searchToken, tokenMarks, untagSignature } from '../../conversation/signature.js';
import { changedObjects, isList, isObject, type JsonObject, listOf } from '../../wire/json.js';
import { afterColon, needleAt, needleOf } from '../../wire/json-skip.js';
import type { Sealer } from '../../wire/seal.js';
import { isOwnCompaction } from './compaction-block.js';
import { isOwnSearchId, ownSearchMark } from './search-blocks.js';

/** Of tokens, in ids of calls, too, and of a search that another vendor ran; see `Translation.carriedMarks`. */
export const carriedMarks = [...tokenMarks, carryingMark, ownSearchMark];

const signature = needleOf('"signature"');
const QUOTE = 0x22;

/** Whether a signature in a body may be empty; see `Translation.mayLackSignature`. */
export function mayLackSignature(body: Buffer): boolean {
  const lastAt = signature.whole.length - 1;
  for (let at = needleAt(body, signature, 0); at !== -1; at = needleAt(body, signature, at + 1)) {
    const value = afterColon(body, at + lastAt);
    if (value !== -1 && body[value] === QUOTE && body[value + 1] === QUOTE) return true;
  }
  return false;
}

/**
 * Makes a body fit for an upstream of this protocol; see `Translation.restore`. A thinking block with a token gets the
 * signature that is in it, or becomes the encrypted block that it stands for; another vendor's is left out, and so are
 * a block whose signature is empty, which the vendor refuses, searches that another vendor ran, citations of what they found,
 * and a message of the assistant that had nothing else. Ids of calls lose the tokens that they carry.
 */
export function restore(body: JsonObject, _sealer: Sealer, target: TargetOptions): JsonObject | null {
  const messages = changedObjects(body.messages, restoreMessage);
  if (messages === null) return null;
  const restored = { ...body, messages };
  return target.thinking === 'adaptive' || mayThink(messages) ? restored : withoutThinking(restored);
}

/**
 * With a budget of thinking the vendor wants the message whose calls have just been answered to begin with a thinking
 * block (https://platform.claude.com/docs/en/build-with-claude/extended-thinking).
 */
function mayThink(messages: readonly unknown[]): boolean {
  const [answered, last] = messages.slice(-2);
  if (!isObject(answered) || !isObject(last) || answered.role !== 'assistant') return true;
  if (!blocksOf(last).some(({ type }) => type === 'tool_result')) return true;
  const first = blocksOf(answered)[0]?.type;
  return first === 'thinking' || first === 'redacted_thinking';
}

function blocksOf({ content }: JsonObject): readonly JsonObject[] {
  return listOf(content).filter(isObject);
}

/** Turns off thinking with a budget, and with it the edits of the context that the vendor takes beside thinking alone. */
function withoutThinking(body: JsonObject): JsonObject {
  if (!isObject(body.thinking) || body.thinking.type !== 'enabled') return body;
  const { thinking: _, context_management: management, ...rest } = body;
  if (!isObject(management) || !Array.isArray(management.edits))
    return management === undefined ? rest : { ...rest, context_management: management };
  const edits = management.edits.filter((edit: unknown) => !(isObject(edit) && clearsThinking(edit)));
  return edits.length === 0 ? rest : { ...rest, context_management: { ...management, edits } };
}

function clearsThinking({ type }: JsonObject): boolean {
  return typeof type === 'string' && type.startsWith('clear_thinking_');
}

function restoreMessage(message: JsonObject): JsonObject | null {
  if (blocksOf(message).some(isOwnCompaction)) return withSummary(message);
  const searches = ownSearches(message.content);
  const content = changedObjects(message.content, (block) => restoreBlock(block, searches));
  if (content === null) return message;
  return content.length === 0 ? null : { ...message, content };
}

/**
 * What was summed up here is told by the user: a conversation begins with words of the user's. Changes of tools that the
 * summary stands for follow it as the blocks that they were.
 */
function withSummary(message: JsonObject): JsonObject {
  const content = blocksOf(message).flatMap((block) =>
    isOwnCompaction(block) ? [{ type: 'text', text: block.content }, ...listOf(block.tool_changes)] : [block],
  );
  return { ...message, role: 'user', content };
}

/** Ids of the searches that another vendor ran, by what stands in their results. */
function ownSearches(content: unknown): ReadonlySet<unknown> {
  const ids = new Set<unknown>();
  for (const block of listOf(content)) {
    if (!isObject(block) || block.type !== 'web_search_tool_result') continue;
    const results = listOf(block.content);
    const isOwn = results.some((result) => isObject(result) && result.encrypted_content === searchToken);
    // One that found nothing says nothing of who ran it but by its id.
    if (isOwn || (results.length === 0 && isOwnSearchId(block.tool_use_id))) ids.add(block.tool_use_id);
  }
  return ids;
}

function restoreBlock(block: JsonObject, searches: ReadonlySet<unknown>): JsonObject | null {
  if (block.type === 'web_search_tool_result') return searches.has(block.tool_use_id) ? null : block;
  if (block.type === 'server_tool_use') return searches.has(block.id) ? null : block;
  if (block.type === 'text') return withoutOwnCitations(block);
  if (block.type === 'tool_use') return withBareId(block, 'id');
  if (block.type === 'tool_result') return withBareId(block, 'tool_use_id');
  const isRedacted = block.type === 'redacted_thinking';
  if (block.type !== 'thinking' && !isRedacted) return block;
  const token = isRedacted ? block.data : block.signature;
  if (token === '') return null;
  const signature = typeof token === 'string' ? untagSignature(token) : null;
  if (signature === null) return block;
  const { protocol, value, redacted, words = block.thinking, isWordless } = signature;
  if (protocol !== 'messages') return null;
  if (redacted) return { type: 'redacted_thinking', data: value };
  return isRedacted || (isWordless && words === '') ? null : { ...block, thinking: words, signature: value };
}

function withoutOwnCitations(block: JsonObject): JsonObject {
  if (!isList(block.citations)) return block;
  const citations = block.citations.filter(
    (citation) => !isObject(citation) || citation.encrypted_index !== searchToken,
  );
  if (citations.length === block.citations.length) return block;
  const { citations: _, ...rest } = block;
  return citations.length === 0 ? rest : { ...rest, citations };
}
