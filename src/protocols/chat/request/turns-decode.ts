import type { AssistantPart, ToolCallPart, ToolResultPart, Turn } from '../../../conversation/request.js';
import { isObject, type JsonObject, textOrNull } from '../../../wire/json.js';
import { wrongValue } from '../../../wire/reading.js';
import { untranslatable } from '../../unsupported.js';
import { decodeAssistantContent, decodeSystemContent, decodeUserContent } from './content-decode.js';

export interface Conversation {
  /** Texts of the system and developer messages before any other. */
  readonly system: readonly string[];
  readonly turns: readonly Turn[];
}

/** What is known of the conversation while its messages are read in their order. */
interface Progress {
  readonly system: string[];
  readonly turns: Turn[];
  /** Names of the tools by the ids of their calls: results name the id alone. */
  readonly toolNames: Map<string, string>;
  /** Results of the turn that the next tool message joins, or null after any other message. */
  results: ToolResultPart[] | null;
  /** Ids that were made for calls in the `function_call` form without a result yet: results name the function alone. */
  readonly functionCalls: string[];
}

/**
 * Reads `messages`. Tool messages in a row become one user turn; messages without content are left out; `name` and
 * `reasoning_content` are dropped, since no other protocol can carry them.
 * @throws {GatewayError} of status 400 for roles, parts and calls that cannot be translated
 */
export function decodeMessages(messages: unknown): Conversation {
  if (!Array.isArray(messages)) throw wrongValue('messages', 'an array');
  const progress: Progress = {
    system: [],
    turns: [],
    toolNames: new Map(),
    results: null,
    functionCalls: [],
  };
  messages.forEach((message: unknown, index) => {
    const at = `messages[${index}]`;
    if (!isObject(message)) throw wrongValue(at, "an object with a 'role'");
    decodeMessage(message, at, index, progress);
  });
  return { system: progress.system, turns: progress.turns };
}

function decodeMessage(message: JsonObject, at: string, index: number, progress: Progress): void {
  const { role, content } = message;
  if (role === 'tool' || role === 'function') {
    addResult(message, at, progress);
    return;
  }
  progress.results = null;
  if (role === 'user') {
    const parts = decodeUserContent(content, `${at}.content`);
    if (parts.length > 0) progress.turns.push({ role, parts });
  } else if (role === 'assistant') {
    const parts = decodeAssistant(message, at, index, progress);
    if (parts.length > 0) progress.turns.push({ role, parts });
  } else if (role === 'system' || role === 'developer') {
    const texts = decodeSystemContent(content, `${at}.content`);
    if (progress.turns.length === 0) progress.system.push(...texts);
    else if (texts.length > 0) progress.turns.push({ role: 'system', text: texts.join('\n\n') });
  } else {
    throw untranslatable(at, `with the role '${String(role)}'`);
  }
}

function addResult(message: JsonObject, at: string, progress: Progress): void {
  const content = decodeUserContent(message.content, `${at}.content`);
  const legacy = message.role === 'function';
  const callId = legacy ? answeredCall(message.name, at, progress) : textOrNull(message.tool_call_id);
  if (callId === null) throw wrongValue(`${at}.tool_call_id`, 'a string');
  const name = textOrNull(legacy ? message.name : null) ?? progress.toolNames.get(callId) ?? '';
  const result: ToolResultPart = { kind: 'toolResult', callId, name, content, isError: false, at };
  if (progress.results === null) {
    progress.results = [result];
    progress.turns.push({ role: 'user', parts: progress.results });
  } else {
    progress.results.push(result);
  }
}

/** The first call of the function that has no result yet or, where none has its name, of any. */
function answeredCall(name: unknown, at: string, { functionCalls, toolNames }: Progress): string {
  const named = functionCalls.findIndex((id) => toolNames.get(id) === name);
  const [id] = functionCalls.splice(Math.max(0, named), 1);
  if (id === undefined) throw wrongValue(at, "the result of a 'function_call' before it that has none yet");
  return id;
}

function decodeAssistant(
  message: JsonObject,
  at: string,
  index: number,
  progress: Progress,
): AssistantPart[] {
  // The sound of an earlier answer is kept by the vendor that made it.
  if (isObject(message.audio)) throw untranslatable(`${at}.audio`);
  const parts: AssistantPart[] = decodeAssistantContent(message.content, `${at}.content`);
  if (typeof message.refusal === 'string' && message.refusal !== '')
    parts.push({ kind: 'refusal', text: message.refusal });
  if (Array.isArray(message.tool_calls)) {
    message.tool_calls.forEach((call: unknown, number) => {
      parts.push(decodeCall(call, `${at}.tool_calls[${number}]`, `call_${index}_${number}`));
    });
  }
  if (isObject(message.function_call)) {
    const id = functionCallId(index);
    progress.functionCalls.push(id);
    parts.push(functionCall(message.function_call, id, `${at}.function_call`));
  }
  for (const part of parts) if (part.kind === 'toolCall') progress.toolNames.set(part.id, part.name);
  return parts;
}

function decodeCall(call: unknown, at: string, spareId: string): ToolCallPart {
  if (!isObject(call)) throw wrongValue(at, 'an object');
  const id = textOrNull(call.id) || spareId;
  const type = call.type ?? (isObject(call.custom) ? 'custom' : 'function');
  if (type === 'custom') {
    if (!isObject(call.custom)) throw wrongValue(`${at}.custom`, 'an object');
    const name = requireName(call.custom, `${at}.custom`);
    return { kind: 'toolCall', id, name, input: textOrNull(call.custom.input) ?? '', custom: true, at };
  }
  if (type !== 'function') throw untranslatable(at, `of type '${String(type)}'`);
  if (!isObject(call.function)) throw wrongValue(`${at}.function`, 'an object');
  return functionCall(call.function, id, at, `${at}.function`);
}

function functionCall(call: JsonObject, id: string, at: string, nameAt = at): ToolCallPart {
  const name = requireName(call, nameAt);
  const input = textOrNull(call.arguments) ?? '';
  return { kind: 'toolCall', id, name, input: input.trim() === '' ? '{}' : input, custom: false, at };
}

function requireName(call: JsonObject, at: string): string {
  if (typeof call.name !== 'string' || call.name === '') throw wrongValue(`${at}.name`, "the tool's name");
  return call.name;
}

/** The `function_call` form has no ids: the call's and its result's are made from where the call stands. */
function functionCallId(index: number): string {
  return `function_call_${index}`;
}
