import { isList, isObject, isObjectText, type JsonObject, objectsOf, parseJson } from '../wire/json.js';
import type { AnswerContext } from './codec.js';
import type { Tool, ToolCallPart } from './request.js';

/** Ids of calls that the servers of the responses and messages protocols accept. */
const legal = /^[A-Za-z0-9_-]{1,64}$/;

/** Returns whether every text protocol accepts an id unchanged. */
export function isLegalCallId(id: string): boolean {
  return legal.test(id);
}

/**
 * Returns the id of a call for a client whose protocol accepts any: the upstream's own or, if it gave none, one derived
 * from the answer's.
 * @param id the upstream's own, or empty
 * @param call index of the call in the choice
 */
export function answerCallId(
  id: string,
  context: Pick<AnswerContext, 'id'>,
  choice: number,
  call: number,
): string {
  if (id !== '') return id;
  return choice === 0 ? `call_${context.id}_${call}` : `call_${context.id}_${choice}_${call}`;
}

/** Member for arguments that are not an object. */
export const argumentsMember = 'input';

/**
 * Returns the arguments of a call as the JSON text of an object. Some protocols require an object, which not all models
 * write. The text of an object is returned unchanged, so that large numbers keep all their digits. Anything else is
 * wrapped in an object.
 */
export function objectArguments(text: string): string {
  if (isObjectText(text)) return text;
  if (text.trim() === '') return '{}';
  const value = parseJson(text);
  return JSON.stringify({ [argumentsMember]: value === undefined ? text : value });
}

/**
 * Tells whether the last call of an answer that reached its token limit may be incomplete, so that its client must not
 * run it. Its arguments are then not an object, or empty although its tool takes some: upstreams report a call of whose
 * arguments nothing was written with an empty object.
 * @param tools of the client
 */
export function isCutCall({ name, input, custom }: CallText, tools: readonly Tool[]): boolean {
  if (custom) return false;
  if (!isObjectText(input)) return true;
  return input.trim() === '{}' && takesArguments(tools.find((tool) => tool.name === name));
}

type CallText = Pick<ToolCallPart, 'name' | 'input' | 'custom'>;

/** Whether a tool may be called with arguments. */
function takesArguments(tool: Tool | undefined): boolean {
  return tool === undefined || mayHaveMembers(tool.parameters ?? {});
}

/** Whether a JSON Schema names members of an object, or a schema of some. */
function mayHaveMembers(schema: JsonObject): boolean {
  const { properties, additionalProperties, patternProperties, required } = schema;
  const named = [properties, additionalProperties, patternProperties, required];
  return (
    Object.hasOwn(schema, '$ref') ||
    named.some((some) => (isObject(some) || isList(some)) && Object.keys(some).length > 0) ||
    ['anyOf', 'oneOf', 'allOf'].some((name) => objectsOf(schema[name]).some(mayHaveMembers))
  );
}

/** A call of the model. Its result may refer to it by its id or by its function. */
export interface AnsweredCall {
  readonly id: string;
  isAnswered: boolean;
}

/** Calls in their order. Each is skipped at most once, however many there are. */
export class CallQueue {
  readonly #calls: AnsweredCall[] = [];
  #next = 0;

  add(call: AnsweredCall): void {
    this.#calls.push(call);
  }

  /** @returns the first call without a result, now marked as answered, or null */
  take(): AnsweredCall | null {
    let call = this.#calls[this.#next];
    // It may have been answered through another queue.
    while (call?.isAnswered) call = this.#calls[++this.#next];
    if (call === undefined) return null;
    this.#next++;
    call.isAnswered = true;
    return call;
  }
}

/**
 * Completes the schema of a function's arguments as vendors require it. Clients omit its type, or the schema itself,
 * and OpenAI refuses an object without `properties` ("object schema missing properties").
 * @param parameters null for a function without arguments
 * @returns the schema itself if nothing is missing
 */
export function toolParameters(parameters: JsonObject | null): JsonObject {
  if (parameters === null) return { type: 'object', properties: {} };
  const { type = 'object', properties, $ref: reference } = parameters;
  if (type !== 'object' || (parameters.type !== undefined && properties !== undefined)) return parameters;
  const members = properties !== undefined || reference !== undefined ? {} : { properties: {} };
  return { type, ...members, ...parameters };
}
