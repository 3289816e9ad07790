import { isObject, type JsonObject } from './json.js';
import { RequestError } from './protocol-route.js';

/** One block of a message, and where it stands in the body: `messages.0.content.1`. */
export interface Block {
  readonly type: string;
  readonly value: JsonObject;
  readonly path: string;
}

/** Neighbouring messages of one role, which the protocol takes as one. */
export interface Turn {
  readonly role: 'user' | 'assistant' | 'system';
  readonly blocks: readonly Block[];
  /** Of its first message. */
  readonly path: string;
}

const imageTypes = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'];
const idPattern = /^[a-zA-Z0-9_-]+$/;
/** Blocks that the user's side writes; servers' own tools have their results among the assistant's. */
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

/** The refusal of a value, named by where it stands. */
export function refuse(path: string, what: string): RequestError {
  return new RequestError(400, `${path}: ${what}`);
}

/** A text member that must be there. */
export function stringIn(value: JsonObject, name: string, path: string): string {
  const text = value[name];
  if (typeof text !== 'string') {
    const place = path === '' ? name : `${path}.${name}`;
    throw refuse(place, text === undefined ? 'Field required' : 'Input should be a valid string');
  }
  return text;
}

/**
 * Reads `messages` and checks every block for itself.
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
 * Reads content, a string or blocks, of which each must be of one of the given types.
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
  // The servers' tools have results of many dated names.
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
}

function checkId(id: string, path: string): void {
  if (!idPattern.test(id)) {
    throw refuse(path, `String should match pattern '${idPattern.source}'`);
  }
}
