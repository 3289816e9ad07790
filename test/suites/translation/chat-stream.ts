import { isObject, type JsonObject } from '../../../src/wire/json.js';
import { readData, readEvents } from '../../support/events.js';
import { at, listAt, numberAt, objectAt, textAt } from '../../support/json.js';
import { rule } from './client.js';

interface OpenCall {
  readonly id: string;
  readonly type: string;
  readonly function: { readonly name: string; arguments: string };
}

interface OpenChoice {
  content: string | null;
  refusal: string;
  reasoning: string;
  readonly calls: OpenCall[];
  readonly logprobs: JsonObject[];
  finish: string | null;
}

/**
 * Assembles the chunks of a chat stream, and checks the protocol's rules.
 * @returns the part of the answer that arrived, and the error chunk that ended it, if any
 */
export function assembleChat(text: string): { readonly completion: JsonObject; readonly error: unknown } {
  const events = readEvents(text);
  rule(
    events.every(({ event }) => event === null),
    'no event line',
  );
  const last = events.at(-1);
  const isDone = last?.data === '[DONE]';
  const chunks = (isDone ? events.slice(0, -1) : events).map(readData);
  const error = chunks.find((chunk) => at(chunk, 'error') !== undefined) ?? null;
  rule(isDone === (error === null), 'it ends with [DONE], or with an error');
  rule(error === null || error === chunks.at(-1), 'nothing follows an error');
  const good = error === null ? chunks : chunks.slice(0, -1);
  const choices = new Map<number, OpenChoice>();
  let usage: unknown;
  for (const chunk of good) {
    checkBase(chunk, good[0]);
    rule(usage === undefined, 'nothing follows the usage');
    const list = listAt(chunk, 'choices');
    if (list.length === 0) usage = readUsage(chunk, choices);
    else rule((at(chunk, 'usage') ?? null) === null, 'no usage beside a choice');
    for (const choice of list) takeDelta(choice, choices);
  }
  rule(error !== null || [...choices.values()].every(({ finish }) => finish !== null), 'every choice ends');
  return { completion: { choices: [...choices].map(wholeChoice), usage }, error };
}

function checkBase(chunk: unknown, first: unknown): void {
  rule(textAt(chunk, 'object') === 'chat.completion.chunk', 'the object is a chunk');
  for (const name of ['id', 'created', 'model']) {
    rule(
      at(chunk, name) !== undefined && at(chunk, name) === at(first, name),
      `every chunk has the same ${name}`,
    );
  }
}

function readUsage(chunk: unknown, choices: ReadonlyMap<number, OpenChoice>): unknown {
  rule(isObject(at(chunk, 'usage')), 'a chunk without choices has the usage');
  rule(
    [...choices.values()].every(({ finish }) => finish !== null),
    'the usage comes after the ends',
  );
  return at(chunk, 'usage');
}

function takeDelta(choice: JsonObject, choices: Map<number, OpenChoice>): void {
  const index = numberAt(choice, 'index');
  const delta = objectAt(choice, 'delta');
  const known = choices.get(index);
  rule(known !== undefined || textAt(delta, 'role') === 'assistant', 'a choice begins with its role');
  rule(known === undefined || delta.role === undefined, 'the role comes once');
  rule(known === undefined || known.finish === null, 'nothing follows the end of a choice');
  const open = known ?? { content: null, refusal: '', reasoning: '', calls: [], logprobs: [], finish: null };
  choices.set(index, open);
  if (typeof delta.content === 'string') open.content = (open.content ?? '') + delta.content;
  open.refusal += textAt(delta, 'refusal');
  open.reasoning += textAt(delta, 'reasoning_content');
  open.logprobs.push(...listAt(choice, 'logprobs', 'content'));
  for (const part of listAt(delta, 'tool_calls')) takeCall(part, open.calls);
  rule(choice.finish_reason !== undefined, 'every choice has a finish_reason, if null');
  if (choice.finish_reason !== null) open.finish = textAt(choice, 'finish_reason');
}

function takeCall(part: JsonObject, calls: OpenCall[]): void {
  const index = at(part, 'index');
  rule(typeof index === 'number' && index <= calls.length, 'calls are numbered in order');
  const known = calls[index];
  if (known === undefined) {
    const call = {
      id: textAt(part, 'id'),
      type: textAt(part, 'type'),
      name: textAt(part, 'function', 'name'),
    };
    rule(
      call.id !== '' && call.type === 'function' && call.name !== '',
      'a call begins with id, type and name',
    );
    calls.push({ id: call.id, type: call.type, function: { name: call.name, arguments: '' } });
  } else {
    rule(part.id === undefined && part.type === undefined, 'id and type of a call come once');
    rule(at(part, 'function', 'name') === undefined, 'the name of a call comes once');
  }
  (calls[index] as OpenCall).function.arguments += textAt(part, 'function', 'arguments');
}

function wholeChoice([index, open]: readonly [number, OpenChoice]): JsonObject {
  return {
    index,
    message: {
      role: 'assistant',
      content: open.calls.length + open.refusal.length > 0 && open.content === '' ? null : open.content,
      refusal: open.refusal === '' ? null : open.refusal,
      ...(open.reasoning === '' ? {} : { reasoning_content: open.reasoning }),
      ...(open.calls.length === 0 ? {} : { tool_calls: open.calls }),
    },
    logprobs: open.logprobs.length === 0 ? null : { content: open.logprobs },
    finish_reason: open.finish,
  };
}
