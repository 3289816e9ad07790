import { isDeepStrictEqual } from 'node:util';
import type { JsonObject } from '../../../src/wire/json.js';
import { readData, readEvents } from '../../support/events.js';
import { at, listAt, numberAt, objectAt, textAt } from '../../support/json.js';
import { rule } from './client.js';

/** The deltas of an item's text, the event that closes them, and the member with the whole text. */
const texts: Readonly<Record<string, readonly [item: string, index: string | null, whole: string]>> = {
  'response.output_text': ['message', 'content_index', 'text'],
  'response.refusal': ['message', 'content_index', 'refusal'],
  'response.reasoning_summary_text': ['reasoning', 'summary_index', 'text'],
  'response.reasoning_text': ['reasoning', 'content_index', 'text'],
  'response.function_call_arguments': ['function_call', null, 'arguments'],
  'response.custom_tool_call_input': ['custom_tool_call', null, 'input'],
};

/** The place where an item's parts are announced. */
const partEvents: Readonly<Record<string, readonly [item: string, index: string, member: string]>> = {
  'response.content_part': ['message', 'content_index', 'content'],
  'response.reasoning_summary_part': ['reasoning', 'summary_index', 'summary'],
};

/** Members of a `response` that never change. */
const constant = ['id', 'object', 'created_at', 'model'];

interface OpenItem {
  readonly added: JsonObject;
  readonly parts: JsonObject[];
  /** A part is open. */
  inPart: boolean;
  /** Deltas of the open part, or of the item. */
  text: string;
  /** The event with the whole text has arrived. */
  isWhole: boolean;
}

/**
 * Assembles the events of a responses stream, and checks the protocol's rules.
 * @returns the last `response`, the error that ended the stream, if any, and the text that arrived
 */
export function assembleResponse(text: string): {
  readonly response: unknown;
  readonly error: unknown;
  readonly text: string;
} {
  const assembly = new Assembly();
  for (const event of readEvents(text)) {
    const data = readData(event);
    rule(event.event !== null && event.event === textAt(data, 'type'), 'the event line says the type');
    assembly.take(event.event, data);
  }
  rule(assembly.isOver, 'it ends with a terminal event, or with an error');
  return { response: assembly.response, error: assembly.error, text: assembly.text };
}

class Assembly {
  response: unknown = null;
  error: unknown = null;
  isOver = false;
  text = '';
  #number = 0;
  #first: unknown = null;
  readonly #items: JsonObject[] = [];
  #open: OpenItem | null = null;

  take(type: string, event: unknown): void {
    const number = at(event, 'sequence_number');
    // An error that ends an otherwise untouched stream has the number 0.
    const uncounted = type === 'error' && number === 0;
    rule(number === this.#number || uncounted, `sequence_number is ${this.#number} in ${type}`);
    rule(!this.isOver || (type === 'error' && this.error !== null), `nothing follows the end: ${type}`);
    rule(
      type === 'error' || (type === 'response.created') === (this.#number === 0),
      'response.created comes first',
    );
    this.#number++;
    const [level = '', step = ''] = [
      type.slice(0, type.lastIndexOf('.')),
      type.slice(type.lastIndexOf('.') + 1),
    ];
    if (type === 'error') this.#fail(event);
    else if (level === 'response') this.#takeResponse(step, event);
    else if (level === 'response.output_item') this.#takeItem(step, event);
    else if (level in partEvents) this.#takePart(level, step, event);
    else if (level in texts) this.#takeText(level, step, event);
    else rule(false, `known types alone, not ${type}`);
  }

  #fail(event: unknown): void {
    rule(
      textAt(event, 'error', 'message') === textAt(event, 'message'),
      'an error says the same in both places',
    );
    this.error = event;
    this.isOver = true;
  }

  #takeResponse(step: string, event: unknown): void {
    const response = objectAt(event, 'response');
    this.#first ??= response;
    for (const name of constant) {
      rule(
        isDeepStrictEqual(response[name], at(this.#first, name)),
        `${name} of the response stays the same`,
      );
    }
    rule(textAt(response, 'status') === (step === 'created' ? 'in_progress' : step), `the status is ${step}`);
    this.response = response;
    if (step === 'created' || step === 'in_progress') {
      rule(listAt(response, 'output').length === 0 && (response.usage ?? null) === null, 'it begins empty');
      return;
    }
    this.isOver = true;
    if (step === 'failed') {
      this.error = { error: response.error };
      return;
    }
    rule(step === 'completed' || step === 'incomplete', `known types alone, not response.${step}`);
    rule(this.#open === null, 'every item is done');
    rule(isDeepStrictEqual(response.output, this.#items), 'the output is the items that were done');
    rule(numberAt(response, 'usage', 'total_tokens') > 0, 'it ends with the usage');
  }

  #takeItem(step: string, event: unknown): void {
    const item = objectAt(event, 'item');
    rule(at(event, 'output_index') === this.#items.length, 'items are numbered in order');
    if (step === 'added') {
      rule(this.#open === null, 'one item at a time');
      rule(textAt(item, 'id') !== '', 'an item has an id');
      rule(!this.#items.some(({ id }) => id === item.id), 'ids of items are unique');
      this.#open = { added: item, parts: [], inPart: false, text: '', isWhole: false };
      return;
    }
    const open = this.#open;
    rule(step === 'done' && open !== null && !open.inPart, 'the open item is done, after its parts');
    for (const name of ['id', 'type', 'call_id', 'name', 'role']) {
      rule(item[name] === open.added[name], `${name} of an item stays the same`);
    }
    this.#checkItem(item, open);
    this.#items.push(item);
    this.#open = null;
  }

  #checkItem(item: JsonObject, open: OpenItem): void {
    if (item.type === 'message')
      rule(isDeepStrictEqual(item.content, open.parts), 'the content is its parts');
    if (item.type === 'reasoning')
      rule(isDeepStrictEqual(item.summary, open.parts), 'the summary is its parts');
    if (item.type === 'function_call') {
      rule(open.isWhole && textAt(item, 'arguments') === open.text, 'the arguments are their deltas');
    }
  }

  #takePart(level: string, step: string, event: unknown): void {
    const [type, index, member] = partEvents[level] as readonly [string, string, string];
    const open = this.#itemOf(type, event);
    rule(at(event, index) === open.parts.length, `parts of the ${member} are numbered in order`);
    const part = objectAt(event, 'part');
    if (step === 'added') {
      rule(!open.inPart && textAt(part, 'text') === '', 'one part at a time, and it begins empty');
      open.inPart = true;
      open.text = '';
      open.isWhole = false;
      return;
    }
    rule(step === 'done' && open.inPart && open.isWhole, 'the open part is done, after its text');
    rule((textAt(part, 'text') || textAt(part, 'refusal')) === open.text, 'the part is its deltas');
    open.parts.push(part);
    open.inPart = false;
  }

  #takeText(level: string, step: string, event: unknown): void {
    const [type, index, member] = texts[level] as readonly [string, string | null, string];
    const open = this.#itemOf(type, event);
    if (index !== null)
      rule(open.inPart && at(event, index) === open.parts.length, 'text belongs to the open part');
    rule(!open.isWhole, 'nothing follows the whole text');
    if (step === 'delta') {
      open.text += textAt(event, 'delta');
      if (level === 'response.output_text') this.text += textAt(event, 'delta');
      return;
    }
    // The arguments of a call may arrive in one piece, without deltas.
    if (open.text === '' && type === 'function_call') open.text = textAt(event, member);
    rule(step === 'done' && textAt(event, member) === open.text, 'the whole text is its deltas');
    open.isWhole = true;
  }

  #itemOf(type: string, event: unknown): OpenItem {
    const open = this.#open;
    rule(open !== null && open.added.type === type, `a ${type} is open`);
    rule(at(event, 'item_id') === open.added.id, 'item_id is that of the open item');
    rule(at(event, 'output_index') === this.#items.length, 'output_index is that of the open item');
    return open;
  }
}
