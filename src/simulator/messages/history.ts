import { unseal } from '../answer/seal.js';
import { isObject, type JsonObject } from '../http/json.js';
import { RequestError } from '../http/request-error.js';

/** A block of a message, with its path in the body: `messages.0.content.1`. */
export interface Block {
  readonly type: string;
  readonly value: JsonObject;
  readonly path: string;
}

/** Consecutive messages of one role, which the protocol treats as one. */
export interface Turn {
  readonly role: 'user' | 'assistant' | 'system';
  readonly blocks: readonly Block[];
  /** Path of its first message. */
  readonly path: string;
}

const imageTypes = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'];
const idPattern = /^[a-zA-Z0-9_-]+$/;
/** Types of user blocks; results of server tools are among the assistant's. */
const userTypes = ['text', 'image', 'document', 'search_result', 'tool_result', 'container_upload'];
const resultTypes = ['text', 'image', 'document', 'search_result', 'tool_reference'];
const assistantTypes = [
  'text',
  'thinking',
  'redacted_thinking',
  'tool_use',
  'server_tool_use',
  'mcp_tool_use',
  'compaction',
];

/** The refusal of a value, with its path. */
export function refuse(path: string, what: string): RequestError {
  return new RequestError(400, `${path}: ${what}`);
}

/** A required text member. */
export function stringIn(value: JsonObject, name: string, path: string): string {
  const text = value[name];
  if (typeof text !== 'string') {
    const place = path === '' ? name : `${path}.${name}`;
    throw refuse(place, text === undefined ? 'Field required' : 'Input should be a valid string');
  }
  return text;
}

/**
 * Reads `messages` and checks every block on its own.
 * @throws RequestError
 */
export function readTurns(messages: unknown): readonly Turn[] {
  if (!Array.isArray(messages)) {
    throw refuse('messages', messages === undefined ? 'Field required' : 'Input should be a valid list');
  }
  if (messages.length === 0) {
    throw refuse('messages', 'at least one message is required');
  }
  const turns: Turn[] = [];
  for (const [index, message] of messages.entries()) {
    const turn = readMessage(message, `messages.${index}`, index === messages.length - 1);
    const last = turns.at(-1);
    if (last?.role === turn.role) {
      turns[turns.length - 1] = { ...last, blocks: [...last.blocks, ...turn.blocks] };
    } else {
      turns.push(turn);
    }
  }
  return turns;
}

function readMessage(message: unknown, path: string, isLast: boolean): Turn {
  if (!isObject(message)) {
    throw refuse(path, 'Input should be an object');
  }
  const { role } = message;
  if (role !== 'user' && role !== 'assistant' && role !== 'system') {
    throw refuse(
      `${path}.role`,
      role === undefined ? 'Field required' : "Input should be 'user' or 'assistant'",
    );
  }
  const types = role === 'user' ? userTypes : role === 'assistant' ? assistantTypes : ['text'];
  const blocks = readContent(message.content, `${path}.content`, types);
  if (blocks.length === 0 && !(role === 'assistant' && isLast)) {
    throw refuse(
      path,
      'all messages must have non-empty content except for the optional final assistant message',
    );
  }
  return { role, blocks, path };
}

/**
 * Reads content: a string, or blocks of the given types.
 * @throws RequestError
 */
export function readContent(content: unknown, path: string, types: readonly string[]): readonly Block[] {
  if (typeof content === 'string') {
    return content === '' ? [] : [textBlock(content, path)];
  }
  if (!Array.isArray(content)) {
    throw refuse(
      path,
      content === undefined ? 'Field required' : 'Input should be a string or a list of blocks',
    );
  }
  return content.map((value: unknown, index) => readBlock(value, `${path}.${index}`, types));
}

function textBlock(text: string, path: string): Block {
  checkText(text);
  return { type: 'text', value: { type: 'text', text }, path };
}

function checkText(text: string): void {
  if (text === '') {
    throw refuse('messages', 'text content blocks must be non-empty');
  }
  if (text.trim() === '') {
    throw refuse('messages', 'text content blocks must contain non-whitespace text');
  }
}

function readBlock(value: unknown, path: string, types: readonly string[]): Block {
  if (!isObject(value)) {
    throw refuse(path, 'Input should be an object');
  }
  const type = stringIn(value, 'type', path);
  // Results of server tools have many dated type names.
  if (!types.includes(type) && !(types === assistantTypes && type.endsWith('_tool_result'))) {
    throw misplaced(type, path, types);
  }
  const inside = `${path}.${type}`;
  switch (type) {
    case 'text':
      checkText(stringIn(value, 'text', inside));
      break;
    case 'image':
      checkImage(value.source, `${inside}.source`);
      break;
    case 'document':
      if (!isObject(value.source)) {
        throw refuse(`${inside}.source`, 'Field required');
      }
      break;
    case 'thinking':
      stringIn(value, 'thinking', inside);
      stringIn(value, 'signature', inside);
      break;
    case 'redacted_thinking':
      stringIn(value, 'data', inside);
      break;
    case 'tool_use':
      checkToolUse(value, inside);
      break;
    case 'tool_result':
      checkToolResult(value, inside);
      break;
  }
  return { type, value, path };
}

function misplaced(type: string, path: string, types: readonly string[]): RequestError {
  if (type === 'tool_use') {
    return refuse(path, '`tool_use` blocks can only be in `assistant` messages');
  }
  if (type === 'tool_result') {
    return refuse(path, '`tool_result` blocks can only be in `user` messages');
  }
  const expected = types.map((one) => `'${one}'`).join(', ');
  return refuse(
    path,
    `Input tag '${type}' found using 'type' does not match any of the expected tags: ${expected}`,
  );
}

function checkImage(source: unknown, path: string): void {
  if (!isObject(source)) {
    throw refuse(path, 'Field required');
  }
  switch (source.type) {
    case 'base64': {
      const inside = `${path}.base64`;
      if (!imageTypes.includes(stringIn(source, 'media_type', inside))) {
        throw refuse(
          `${inside}.media_type`,
          `Input should be ${imageTypes.map((type) => `'${type}'`).join(', ')}`,
        );
      }
      const data = stringIn(source, 'data', inside);
      if (data === '' || Buffer.from(data, 'base64').toString('base64') !== data) {
        throw refuse(`${inside}.data`, 'invalid base64 data');
      }
      return;
    }
    case 'url':
      if (!/^https?:\/\//.test(stringIn(source, 'url', `${path}.url`))) {
        throw refuse(`${path}.url.url`, 'Only HTTP(S) URLs are supported.');
      }
      return;
    case 'file':
      throw new RequestError(404, `File not found: ${stringIn(source, 'file_id', `${path}.file`)}`);
    default:
      throw refuse(
        path,
        "Input tag found using 'type' does not match any of the expected tags: 'base64', 'url', 'file'",
      );
  }
}

function checkToolUse(value: JsonObject, path: string): void {
  checkId(stringIn(value, 'id', path), `${path}.id`);
  stringIn(value, 'name', path);
  if (!isObject(value.input)) {
    throw refuse(
      `${path}.input`,
      value.input === undefined ? 'Field required' : 'Input should be a valid dictionary',
    );
  }
}

function checkToolResult(value: JsonObject, path: string): void {
  checkId(stringIn(value, 'tool_use_id', path), `${path}.tool_use_id`);
  const content = value.content ?? '';
  const blocks = readContent(content, `${path}.content`, resultTypes);
  if (value.is_error === true && blocks.length === 0) {
    throw refuse(path, 'content cannot be empty if `is_error` is true');
  }
  if (value.is_error === true && blocks.some(({ type }) => type !== 'text')) {
    throw refuse(path, 'all content must be type "text" if `is_error` is true');
  }
}

function checkId(id: string, path: string): void {
  if (!idPattern.test(id)) {
    throw refuse(path, `String should match pattern '${idPattern.source}'`);
  }
}

/**
 * Checks the turns of a conversation: the role of the first, the results of calls, and that every thinking block is the
 * simulator's.
 * @param thinking whether thinking is enabled with a budget; the protocol then requires it in unfinished turns, too
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
      // A block without text is one whose text was left out of the answer.
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

/** The assistant's turns since the last user message other than tool results, including a prefill. */
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
