import { noSignature } from '../../conversation/signature.js';
import { isObject, type JsonObject, quoted } from '../../wire/json.js';

/*
 * A client may ask for nothing but a compaction of its conversation (beta `compact-2026-09-04`;
 * `compactBeforeNextTurn` of `@anthropic-ai/sdk`): the answer is one block, which takes the place of all messages before it.
 * Where an upstream has none, the block has a summary and no signature of the vendor's.
 */

/** What a body says of the compaction that it asks for, or null. */
export function compactionIn({ compaction }: JsonObject): JsonObject | null {
  return isObject(compaction) && compaction.type === 'summarize' ? compaction : null;
}

/**
 * The block.
 * @param summary null before it has come, as a stream has it
 * @param echo see `ConversationRequest.echo`: the changes of tools that the summary stands for
 */
export function compactionBlock(summary: string | null, echo: JsonObject | null): string {
  const content = summary === null ? 'null' : quoted(summary);
  const changes = JSON.stringify(echo?.tool_changes ?? []);
  return `{"type":"compaction","content":${content},"encrypted_content":null,"signature":"${noSignature}","tool_changes":${changes}}`;
}

/** Whether a block is one that was made here: the vendor takes back its own alone. */
export function isOwnCompaction({ type, signature }: JsonObject): boolean {
  return type === 'compaction' && signature === noSignature;
}
