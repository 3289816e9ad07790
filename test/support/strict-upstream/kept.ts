import { isObject, type JsonObject } from '../../../src/wire/json.js';
import { BrokenRule, rule } from './asked.js';
import type { Memory } from './memory.js';

/* State that vendors keep between requests: responses by their ids, and threads of messages. */

const responsePath = /^\/v1\/responses\/([^/?]+)(\/input_items)?(?:\?.*)?$/;

/**
 * Returns a request whose input contains the whole conversation.
 * @throws BrokenRule for an unknown response or message
 */
export function continued(body: JsonObject, memory: Memory): JsonObject {
  if (isObject(body.thread)) return goneOn(body, body.thread, memory);
  const { previous_response_id: id, input } = body;
  const items = itemsOf(input);
  if (typeof id !== 'string' || !Array.isArray(items)) return body;
  const told = memory.told.get(id);
  rule(told !== undefined, `previous_response_id: Previous response with id '${id}' not found.`);
  return { ...body, input: [...told, ...items] };
}

/** @throws BrokenRule for what a request repeats of its thread */
function goneOn(body: JsonObject, thread: JsonObject, memory: Memory): JsonObject {
  if (thread.type === 'create') return body;
  rule(thread.type === 'continue', 'thread.type');
  const kept = memory.threads.get(String(thread.previous_message_id));
  if (kept === undefined) throw new BrokenRule('Message not found.', 404, 'thread_not_found');
  for (const name of ['system', 'tools']) rule(body[name] === undefined, `${name}: the thread has its own`);
  const { messages, ...begun } = kept;
  return { ...begun, ...body, messages: [messages, body.messages].flat() };
}

/** Keeps a request, which contains the whole conversation, with its answer. */
export function keep(body: JsonObject, answer: object, memory: Memory): void {
  const { id, output, content } = answer as JsonObject;
  if (typeof id !== 'string') return;
  if (isObject(body.thread)) {
    const { system, tools, messages } = body;
    const told = [messages, { role: 'assistant', content }].flat();
    memory.threads.set(id, { system, tools, messages: told });
  }
  if (body.store === false || !Array.isArray(output)) return;
  const input = [itemsOf(body.input)].flat().filter(isObject);
  memory.told.set(id, [...input, ...output.filter(isObject)]);
  memory.responses.set(id, { answer, input });
}

/**
 * @returns the answer to a request for a response by its id, or null for any other request.
 * @throws BrokenRule for an unknown id
 */
export function answerById(method: string, path: string, memory: Memory): object | null {
  const [, id = '', list] = responsePath.exec(path) ?? [];
  if (id === '' || method === 'POST') return null;
  const kept = memory.responses.get(id);
  if (kept === undefined) throw new BrokenRule(`Response with id '${id}' not found.`, 404);
  if (method === 'DELETE') {
    memory.responses.delete(id);
    return { id, object: 'response', deleted: true };
  }
  if (list === undefined) return kept.answer;
  const data = kept.input.map((item, index) => ({
    id: `msg_in_${index}`,
    ...item,
    ...(item.type === undefined ? { type: 'message' } : {}),
  }));
  const ends = { first_id: 'msg_in_0', last_id: `msg_in_${data.length - 1}` };
  return { object: 'list', data: data.toReversed(), ...ends, has_more: false };
}

/** Returns the items of a responses request's input. */
export function itemsOf(input: unknown): unknown {
  return typeof input === 'string' ? [{ role: 'user', content: input }] : input;
}
