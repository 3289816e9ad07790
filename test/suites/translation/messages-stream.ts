import { isObject, type JsonObject } from '../../../src/wire/json.js';
import { readData, readEvents } from '../../support/events.js';
import { at, objectAt, textAt } from '../../support/json.js';
import { rule } from './client.js';

/** The deltas of each kind of block, and their destination. */
const deltas: Readonly<Record<string, readonly [block: string, member: string]>> = {
  text_delta: ['text', 'text'],
  thinking_delta: ['thinking', 'thinking'],
  signature_delta: ['thinking', 'signature'],
  input_json_delta: ['tool_use', 'partial_json'],
};

interface OpenBlock {
  readonly block: Record<string, unknown>;
  input: string;
  signed: boolean;
}

/**
 * Assembles the events of a messages stream, and checks the protocol's rules.
 * @returns the part of the message that arrived, and the error event that ended it, if any
 */
export function assembleMessage(text: string): { readonly message: JsonObject; readonly error: unknown } {
  const events = readEvents(text).map((event) => {
    const data = readData(event);
    rule(event.event !== null && event.event === textAt(data, 'type'), 'the event line says the type');
    return data;
  });
  const steps = events.filter((event) => textAt(event, 'type') !== 'ping');
  const assembly = new Assembly();
  for (const step of steps) assembly.take(step);
  rule(assembly.isOver, 'it ends with message_stop, or with an error');
  return { message: assembly.message, error: assembly.error };
}

class Assembly {
  error: unknown = null;
  isOver = false;
  readonly #blocks: JsonObject[] = [];
  #start: JsonObject | null = null;
  #open: OpenBlock | null = null;
  #end: JsonObject | null = null;

  get message(): JsonObject {
    const usage = { ...objectAt(this.#start, 'usage'), ...objectAt(this.#end, 'usage') };
    // An error may arrive in the middle of a block.
    const cut = this.#open === null || this.error === null ? [] : [this.#open.block];
    return { ...this.#start, content: [...this.#blocks, ...cut], ...objectAt(this.#end, 'delta'), usage };
  }

  take(event: unknown): void {
    const type = textAt(event, 'type');
    rule(!this.isOver, `nothing follows the end: ${type}`);
    rule(
      type === 'error' || (type === 'message_start') === (this.#start === null),
      'message_start comes first, once',
    );
    rule(
      type === 'error' || type === 'message_stop' || this.#end === null,
      'message_stop follows message_delta',
    );
    switch (type) {
      case 'message_start':
        this.#begin(objectAt(event, 'message'));
        break;
      case 'content_block_start':
        this.#openBlock(event);
        break;
      case 'content_block_delta':
        this.#extend(event);
        break;
      case 'content_block_stop':
        this.#closeBlock(event);
        break;
      case 'message_delta':
        rule(this.#open === null, 'message_delta comes after the blocks');
        rule(isObject(at(event, 'usage')), 'message_delta has the usage');
        rule(textAt(event, 'delta', 'stop_reason') !== '', 'message_delta has a stop_reason');
        this.#end = event as JsonObject;
        break;
      case 'message_stop':
        rule(this.#end !== null, 'message_delta comes before message_stop');
        this.isOver = true;
        break;
      case 'error':
        this.error = event;
        this.isOver = true;
        break;
      default:
        rule(false, `known types alone, not ${type}`);
    }
  }

  #begin(message: JsonObject): void {
    rule(
      textAt(message, 'id') !== '' && textAt(message, 'model') !== '',
      'the message has an id and a model',
    );
    rule(message.role === 'assistant' && message.type === 'message', "the message is the assistant's");
    rule(Array.isArray(message.content) && message.content.length === 0, 'the message begins empty');
    rule(message.stop_reason === null && message.stop_sequence === null, 'the message begins without an end');
    rule(isObject(message.usage), 'the message begins with its usage');
    this.#start = message;
  }

  #openBlock(event: unknown): void {
    rule(this.#open === null, 'one block at a time');
    rule(at(event, 'index') === this.#blocks.length, 'blocks are numbered in order');
    const block = { ...objectAt(event, 'content_block') };
    if (block.type === 'tool_use') {
      rule(textAt(block, 'id') !== '' && textAt(block, 'name') !== '', 'tool_use begins with id and name');
    }
    this.#open = { block, input: '', signed: false };
  }

  #extend(event: unknown): void {
    const open = this.#open;
    const delta = objectAt(event, 'delta');
    const [block, member] = deltas[textAt(delta, 'type')] ?? [];
    rule(open !== null && at(event, 'index') === this.#blocks.length, 'a delta belongs to the open block');
    rule(block !== undefined && member !== undefined && open.block.type === block, 'a delta fits its block');
    rule(!open.signed, 'nothing follows a signature but the end of its block');
    if (member === 'partial_json') open.input += textAt(delta, member);
    else open.block[member] = textAt(open.block, member) + textAt(delta, member);
    open.signed = member === 'signature';
  }

  #closeBlock(event: unknown): void {
    const open = this.#open;
    rule(open !== null && at(event, 'index') === this.#blocks.length, 'the open block is closed');
    if (open.block.type === 'tool_use' && open.input !== '') {
      open.block.input = JSON.parse(open.input) as unknown;
    }
    this.#blocks.push(open.block);
    this.#open = null;
  }
}
