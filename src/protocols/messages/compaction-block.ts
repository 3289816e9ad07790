import { noSignature } from '../../conversation/signature.js';
import { isObject, type JsonObject } from '../../wire/json.js';
import { quoted } from '../../wire/quoted.js';

/*
 * A client may request only a compaction of its conversation (beta `compact-2026-09-04`; `compactBeforeNextTurn` of
 * `@anthropic-ai/sdk`). The answer is one block, which replaces all messages before it. If the upstream does not have
 * this, the block has a summary and no signature of the vendor's.
 */

/** Returns the member of a body that requests a compaction, or null. */
export function compactionIn({ compaction }: JsonObject): JsonObject | null {
  return isObject(compaction) && compaction.type === 'summarize' ? compaction : null;
}

/**
 * Writes the block.
 * @param summary null before it has arrived, as in a stream
 * @param echo see `ConversationRequest.echo`: the changes of tools that the summary replaces
 */
export function compactionBlock(summary: string | null, echo: JsonObject | null): string {
  const content = summary === null ? 'null' : quoted(summary);
  const changes = JSON.stringify(echo?.tool_changes ?? []);
  return `{"type":"compaction","content":${content},"encrypted_content":null,"signature":"${noSignature}","tool_changes":${changes}}`;
}

/** Tells whether the gateway made a block. The vendor takes back only its own. */
export function isOwnCompaction({ type, signature }: JsonObject): boolean {
  return type === 'compaction' && signature === noSignature;
}
