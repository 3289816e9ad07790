import { unseal } from '../answer/seal.js';
import { isObject, type JsonObject } from '../http/json.js';
import { RequestError } from '../http/request-error.js';
import { invalid, missing, textIn, tooLong, unsupported } from '../openai/values.js';

/** An item of the input, with its path in the body: `input[2]`. */
export interface Item {
  readonly type: string;
  readonly value: JsonObject;
  readonly path: string;
}

const longestId = 64;
/** Prefixes of item ids. */
const prefixes: Readonly<Record<string, string>> = {
  message: 'msg',
  reasoning: 'rs',
  function_call: 'fc',
  custom_tool_call: 'ctc',
  compaction: 'cmp',
};
/** Items of server tools, of which only the id is checked. */
const hosted =
  /^(?:web_search|file_search|code_interpreter|image_generation|computer|mcp|local_shell|shell|apply_patch|tool_search|additional_tools)(?:_|$)/;
const writtenByUser = ['input_text', 'input_image', 'input_file'];
const writtenByModel = ['output_text', 'refusal'];

/**
 * Reads `input`, a text or items, and checks every item on its own.
 * @throws RequestError
 */
export function readItems(input: unknown): readonly Item[] {
  if (typeof input === 'string') {
    const value = { type: 'message', role: 'user', content: input };
    return [{ type: 'message', value, path: 'input' }];
  }
  if (!Array.isArray(input)) {
    throw invalid('input', 'a string or an array of items');
  }
  return input.map((value: unknown, index) => readItem(value, `input[${index}]`));
}

function readItem(value: unknown, path: string): Item {
  if (!isObject(value)) {
    throw invalid(path, 'an object');
  }
  const type = value.type ?? 'message';
  if (typeof type !== 'string') {
    throw invalid(`${path}.type`, 'a string');
  }
  checkId(value.id, prefixes[type], `${path}.id`);
  switch (type) {
    case 'message':
      checkMessage(value, path);
      break;
    case 'function_call':
    case 'custom_tool_call':
      for (const name of ['call_id', 'name', type === 'function_call' ? 'arguments' : 'input']) {
        textIn(value, name, path);
      }
      checkId(value.call_id, undefined, `${path}.call_id`);
      break;
    case 'function_call_output':
    case 'custom_tool_call_output':
      checkId(textIn(value, 'call_id', path), undefined, `${path}.call_id`);
      checkOutput(value.output, `${path}.output`);
      break;
    case 'reasoning':
      checkReasoning(value, path);
      break;
    case 'compaction':
    case 'compaction_summary':
      openSeal('compaction', textIn(value, 'encrypted_content', path));
      break;
    case 'item_reference':
      throw new RequestError(
        404,
        `Item with id '${String(value.id)}' not found. Items are not persisted when \`store\` is set to false. Try again with \`store\` set to true, or remove this item from your input.`,
        'input',
        null,
      );
    case 'compaction_trigger':
      break;
    default:
      if (!hosted.test(type)) {
        throw new RequestError(400, `Invalid value: '${type}'.`, `${path}.type`, 'invalid_value');
      }
  }
  return { type, value, path };
}

function checkId(id: unknown, prefix: string | undefined, path: string): void {
  if (id === undefined || id === null) {
    return;
  }
  if (typeof id !== 'string' || id === '') {
    throw invalid(path, 'a string that is not empty');
  }
  if (id.length > longestId) {
    throw tooLong(id, longestId, path);
  }
  if (prefix !== undefined && !id.startsWith(prefix)) {
    throw new RequestError(
      400,
      `Invalid '${path}': '${id}'. Expected an ID that begins with '${prefix}'.`,
      path,
      'invalid_value',
    );
  }
}

function checkMessage(value: JsonObject, path: string): void {
  const roles = ['assistant', 'system', 'developer', 'user'];
  if (typeof value.role !== 'string' || !roles.includes(value.role)) {
    throw unsupported(value.role, roles, `${path}.role`);
  }
  if (typeof value.content === 'string') {
    return;
  }
  if (!Array.isArray(value.content)) {
    throw invalid(`${path}.content`, 'a string or an array of parts');
  }
  const types = value.role === 'assistant' ? writtenByModel : writtenByUser;
  for (const [index, part] of value.content.entries()) {
    checkPart(part, types, `${path}.content[${index}]`);
  }
}

function checkPart(part: unknown, types: readonly string[], path: string): void {
  if (!isObject(part) || typeof part.type !== 'string' || !types.includes(part.type)) {
    throw unsupported(isObject(part) ? part.type : part, types, isObject(part) ? `${path}.type` : path);
  }
  switch (part.type) {
    case 'input_text':
    case 'output_text':
      textIn(part, 'text', path);
      break;
    case 'refusal':
      textIn(part, 'refusal', path);
      break;
    case 'input_image':
      if (!/^(?:https?:\/\/|data:image\/[\w.+-]+;base64,)/.test(textIn(part, 'image_url', path))) {
        throw invalid(`${path}.image_url`, 'a URL or a data URL of an image');
      }
      break;
    case 'input_file':
      if (typeof part.file_data !== 'string' && typeof part.file_url !== 'string') {
        throw invalid(path, 'one of file_data and file_url, as nothing is stored here');
      }
  }
}

function checkOutput(output: unknown, path: string): void {
  if (typeof output === 'string') {
    return;
  }
  if (!Array.isArray(output)) {
    throw invalid(path, 'a string or an array of parts');
  }
  for (const [index, part] of output.entries()) {
    checkPart(part, writtenByUser, `${path}[${index}]`);
  }
}

function checkReasoning(value: JsonObject, path: string): void {
  if (!Array.isArray(value.summary)) throw missing(`${path}.summary`);
  if (typeof value.encrypted_content === 'string') {
    openSeal('reasoning', value.encrypted_content);
  }
}

/**
 * The text of content that the simulator encrypted.
 * @throws RequestError for content that is not the simulator's
 */
export function openSeal(kind: 'reasoning' | 'compaction', sealed: string): string {
  const text = unseal(kind, sealed);
  if (text === null) {
    throw new RequestError(
      400,
      `The encrypted content ${sealed.slice(0, 16)}... could not be verified. Reason: Encrypted content could not be decrypted or parsed.`,
      null,
      'invalid_encrypted_content',
    );
  }
  return text;
}
