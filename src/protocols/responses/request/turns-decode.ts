import type { AssistantPart, ToolResultPart, Turn, UserPart } from '../../../conversation/request.js';
import { isObject, type JsonObject, textOrNull } from '../../../wire/json.js';
import type { Sealer } from '../../../wire/seal.js';
import { untranslatable } from '../../unsupported.js';
import { expandCompaction, isCompaction } from '../compact.js';
import { type HostedTool, type ToolList, upstreamName } from '../namespaces.js';
import { carriedReasoning } from '../reasoning.js';
import { invalid, missing, nameOfType, ofType, wrongType } from '../refusals.js';
import { decodeAssistantContent, decodeContent, textOfContent } from './content-decode.js';

/** What the names of items begin with that a tool of the upstream's own, and its output, have in a conversation. */
const hostedPrefixes: readonly string[] = [
  'web_search_',
  'file_search_',
  'code_interpreter_',
  'image_generation_',
  'computer_',
  'mcp_',
  'local_shell_',
  'shell_',
  'apply_patch_',
  'tool_search_',
];

/** What a client's input says. */
export interface DecodedInput {
  /** Texts of the instructions before the first turn. */
  readonly system: string[];
  readonly turns: Turn[];
  /** Items of tools that only an upstream of the protocol runs; they are in no turn. */
  readonly hosted: HostedTool[];
  /** The input ends with the wish for a compaction. */
  readonly wantsCompaction: boolean;
}

/**
 * Decodes `input`. Adjacent items of the assistant become one turn, and so do adjacent outputs of its calls.
 * @param tools the client's tools: calls name them as the client does
 * @throws {GatewayError} naming the item that cannot be taken
 */
export function decodeInput(input: unknown, tools: ToolList, sealer: Sealer): DecodedInput {
  if (typeof input === 'string') {
    const turns = [userTurn([{ kind: 'text', text: input }])];
    return { system: [], turns, hosted: [], wantsCompaction: false };
  }
  const reader = new InputReader(tools, sealer);
  const items: readonly unknown[] = Array.isArray(input) ? input : [];
  let wantsCompaction = false;
  items.forEach((item, index) => {
    const at = `input[${index}]`;
    if (!isObject(item)) throw wrongType(at, 'an object');
    if (item.type !== 'compaction_trigger') reader.read(item, at);
    else if (index === items.length - 1) wantsCompaction = true;
    else throw invalid(at, `an item of type 'compaction_trigger' must be the last one`);
  });
  const { system, turns, hosted } = reader;
  return { system, turns, hosted, wantsCompaction };
}

class InputReader {
  readonly system: string[] = [];
  readonly turns: Turn[] = [];
  readonly hosted: HostedTool[] = [];
  readonly #tools: ToolList;
  readonly #sealer: Sealer;
  /** Names of the calls so far, by their ids: an output does not say which tool gave it. */
  readonly #called = new Map<string, string>();
  /** Parts of the last turn, while it is one that another item may join. */
  #assistant: AssistantPart[] | null = null;
  #results: UserPart[] | null = null;

  constructor(tools: ToolList, sealer: Sealer) {
    this.#tools = tools;
    this.#sealer = sealer;
  }

  read(item: JsonObject, at: string): void {
    switch (item.type) {
      case undefined:
      case null:
      case 'message':
        this.#message(item, at);
        break;
      case 'function_call':
        this.#call(item, { input: textOrNull(item.arguments) || '{}', custom: false, at });
        break;
      case 'custom_tool_call':
        this.#call(item, { input: textOrNull(item.input) ?? '', custom: true, at });
        break;
      case 'function_call_output':
      case 'custom_tool_call_output':
        this.#output(item, at);
        break;
      case 'reasoning':
        this.#reasoning(item);
        break;
      default:
        if (isCompaction(item))
          this.#turn(userTurn([{ kind: 'text', text: expandCompaction(item, at, this.#sealer) }]));
        else if (isHostedItem(item.type)) this.hosted.push({ type: item.type, at });
        else throw untranslatable(at, ofType(item.type));
    }
  }

  #message(item: JsonObject, at: string): void {
    const { role, content } = item;
    const path = `${at}.content`;
    switch (role) {
      case 'system':
      case 'developer': {
        const text = textOfContent(content, path);
        if (text === '') break;
        if (this.turns.length > 0) this.#turn({ role: 'system', text });
        else this.system.push(text);
        break;
      }
      case 'user':
        this.#turn(userTurn(decodeContent(content, path)));
        break;
      case 'assistant':
        for (const part of decodeAssistantContent(content, path)) this.#part(part);
        break;
      default:
        throw untranslatable(`${at}.role`, `'${nameOfType(role)}'`);
    }
  }

  #call(item: JsonObject, call: { input: string; custom: boolean; at: string }): void {
    const id = requireCallId(item, call.at);
    if (typeof item.name !== 'string') throw missing(`${call.at}.name`, 'a string');
    const name = upstreamName(this.#tools, item.namespace, item.name);
    this.#called.set(id, name);
    this.#part({ kind: 'toolCall', id, name, ...call });
  }

  #output(item: JsonObject, at: string): void {
    const callId = requireCallId(item, at);
    const result: ToolResultPart = {
      kind: 'toolResult',
      callId,
      name: this.#called.get(callId) ?? '',
      content: decodeContent(item.output, `${at}.output`),
      isError: false,
      at,
    };
    if (this.#results === null) {
      const results: UserPart[] = [];
      this.#turn(userTurn(results));
      this.#results = results;
    }
    this.#results.push(result);
  }

  #reasoning(item: JsonObject): void {
    const text = joinedTexts(item.summary) || joinedTexts(item.content);
    const signature = carriedReasoning(item);
    if (text !== '' || signature !== null) this.#part({ kind: 'reasoning', text, signature });
  }

  #part(part: AssistantPart): void {
    if (this.#assistant === null) {
      const parts: AssistantPart[] = [];
      this.#turn({ role: 'assistant', parts });
      this.#assistant = parts;
    }
    this.#assistant.push(part);
  }

  #turn(turn: Turn): void {
    this.#assistant = null;
    this.#results = null;
    this.turns.push(turn);
  }
}

function userTurn(parts: UserPart[]): Turn {
  return { role: 'user', parts };
}

/** The texts of a reasoning item's parts, with a blank line between them. */
export function joinedTexts(parts: unknown): string {
  if (!Array.isArray(parts)) return '';
  const texts = parts.map((part) => (isObject(part) ? (textOrNull(part.text) ?? '') : ''));
  return texts.filter((text) => text !== '').join('\n\n');
}

function requireCallId(item: JsonObject, at: string): string {
  if (typeof item.call_id === 'string' && item.call_id !== '') return item.call_id;
  throw missing(`${at}.call_id`, 'a non-empty string');
}

/** Whether an item of a conversation belongs to a tool that only an upstream of the protocol runs. */
function isHostedItem(type: unknown): type is string {
  return typeof type === 'string' && hostedPrefixes.some((prefix) => type.startsWith(prefix));
}
