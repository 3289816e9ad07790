import { type Block, refuse, stringIn, type Turn } from './messages-turns.js';
import { RequestError } from './protocol-route.js';
import { unseal } from './seal.js';

/**
 * Checks what the turns of a conversation owe each other: who begins, which calls have results, and that every
 * thinking block is one that the simulator made.
 * @param thinking whether thinking is enabled with a budget, where the protocol asks for it in unfinished turns too
 * @throws RequestError
 */
export function checkHistory(turns: readonly Turn[], thinking: boolean): void {
  if (turns[0]?.role !== 'user') {
    throw refuse('messages', 'first message must use the "user" role');
  }
  checkCalls(turns);
  for (const turn of turns.filter(({ role }) => role === 'assistant')) {
    checkThinking(turn);
  }
  checkPrefill(turns);
  if (thinking) {
    for (const turn of unfinished(turns)) {
      checkOpening(turn);
    }
  }
}

function idsOf(turn: Turn | undefined, type: string, name: string): { id: string; block: Block }[] {
  return (turn?.blocks ?? [])
    .filter((block) => block.type === type)
    .map((block) => ({ id: stringIn(block.value, name, block.path), block }));
}

function checkCalls(turns: readonly Turn[]): void {
  const seen = new Set<string>();
  for (const [index, turn] of turns.entries()) {
    const calls = idsOf(turn, 'tool_use', 'id').map(({ id }) => id);
    for (const id of calls) {
      if (seen.has(id)) {
        throw refuse('messages', '`tool_use` ids must be unique');
      }
      seen.add(id);
    }
    checkResults(turn, turns[index - 1]);
    const answered = new Set(leadingResults(turns[index + 1]));
    const open = calls.filter((id) => !answered.has(id));
    if (open.length > 0) {
      throw refuse(
        turn.path,
        `\`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
      );
    }
  }
}

/** The calls that the results at the start of a turn answer. */
function leadingResults(turn: Turn | undefined): readonly string[] {
  const end = turn?.blocks.findIndex(({ type }) => type !== 'tool_result') ?? -1;
  const leading = turn === undefined || end < 0 ? turn : { ...turn, blocks: turn.blocks.slice(0, end) };
  return idsOf(leading, 'tool_result', 'tool_use_id').map(({ id }) => id);
}

function checkResults(turn: Turn, before: Turn | undefined): void {
  const calls = new Set(idsOf(before, 'tool_use', 'id').map(({ id }) => id));
  const seen = new Set<string>();
  for (const { id, block } of idsOf(turn, 'tool_result', 'tool_use_id')) {
    if (!calls.has(id)) {
      throw refuse(
        block.path,
        `unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
      );
    }
    if (seen.has(id)) {
      throw refuse(
        block.path,
        `each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${id}`,
      );
    }
    seen.add(id);
  }
}

function checkThinking({ blocks, path }: Turn): void {
  for (const { type, value, path: place } of blocks) {
    if (
      type === 'redacted_thinking' &&
      unseal('redacted thinking', stringIn(value, 'data', place)) === null
    ) {
      throw refuse(place, 'Invalid `data` in `redacted_thinking` block');
    }
    if (type === 'thinking') {
      const original = unseal('thinking', stringIn(value, 'signature', place));
      if (original === null) {
        throw refuse(place, 'Invalid `signature` in `thinking` block');
      }
      // Without its text a block is one whose text was left out of the answer.
      if (value.thinking !== '' && value.thinking !== original) {
        throw refuse(
          place,
          '`thinking` or `redacted_thinking` blocks cannot be modified. These blocks must remain as they were in the original response.',
        );
      }
    }
  }
  const last = blocks.at(-1)?.type ?? '';
  if (last === 'thinking' || last === 'redacted_thinking') {
    throw refuse(path, 'The final block in an assistant message cannot be `thinking`.');
  }
}

function checkPrefill(turns: readonly Turn[]): void {
  const last = turns.at(-1);
  const block = last?.blocks.at(-1);
  if (last?.role === 'assistant' && block?.type === 'text' && /\s$/.test(String(block.value.text))) {
    throw refuse('messages', 'final assistant content cannot end with trailing whitespace');
  }
}

/** The assistant's turns since the user last said something other than results of tools, and one that is to be continued. */
function unfinished(turns: readonly Turn[]): readonly Turn[] {
  const asked = turns.findLastIndex(
    ({ role, blocks }) => role === 'user' && blocks.every(({ type }) => type !== 'tool_result'),
  );
  return turns.slice(asked + 1).filter(({ role }) => role === 'assistant');
}

function checkOpening({ blocks, path }: Turn): void {
  const found = blocks[0]?.type ?? 'nothing';
  if (found !== 'thinking' && found !== 'redacted_thinking') {
    throw new RequestError(
      400,
      `${path}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${found}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceding the lastmost set of \`tool_use\` and \`tool_result\` blocks). To avoid this requirement, disable \`thinking\`.`,
    );
  }
}
