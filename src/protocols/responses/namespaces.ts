import type { ClientTool, HostedTool, Tool, ToolChoice } from '../../conversation/request.js';
import {
  flagOrNull,
  invalidValue,
  isObject,
  type JsonObject,
  listOf,
  missingValue,
  nameOfType,
  textOf,
  textOrNull,
} from '../../wire/json.js';
import { hashOf } from '../openai-shared/hashed-id.js';
import { untranslatable } from '../unsupported.js';
import { type ClientToolType, clientToolType, clientToolTypes, functionOf } from './client-tools.js';
import { isSearchTool } from './search-item.js';

/*
 * Tools can stand in a namespace, which their calls name, too. No other protocol has namespaces: the upstream gets such
 * a tool under one name, and its calls are sent to the client with both. Both directions use the client's list of
 * tools.
 */

/** A function or custom tool of a client's list, or another tool that the upstream gets as a function. */
interface ListedTool {
  readonly tool: JsonObject;
  /** Null for a function or a custom tool. */
  readonly type: ClientToolType | null;
  /** Null for a tool without a namespace. */
  readonly namespace: string | null;
  /** Its name for the client. */
  readonly ownName: string;
  /** Its name at the upstream. */
  readonly name: string;
}

interface FoundSearch {
  readonly tool: JsonObject;
  readonly at: string;
}

export interface ToolList {
  readonly listed: readonly ListedTool[];
  readonly hosted: readonly HostedTool[];
  /** The first declared web search, or null. */
  readonly search: FoundSearch | null;
  /** Names at the upstream of the tools in namespaces, by `pathOf`. */
  readonly upstreamNames: ReadonlyMap<string, string>;
  /** Names at the upstream of declared tools without names of their own. */
  readonly typeNames: ReadonlyMap<ClientToolType, string>;
}

/** One of the places where a client declares tools. */
export interface ToolSource {
  /** Of any shape. */
  readonly tools: unknown;
  /** Path of the tools in the client's body. */
  readonly at: string;
}

type FoundTool = Omit<ListedTool, 'name'>;

const longestName = 64;
const illegal = /[^A-Za-z0-9_-]/g;
const suffixLength = 8;

/**
 * Reads the tools that a client declares. The same list always gives the same names. A tool in a namespace keeps its
 * name if it is legal and no other tool has it. If a tool is declared several times, the first declaration counts:
 * agents repeat them.
 */
export function listTools(sources: readonly ToolSource[]): ToolList {
  const { found, hosted, search } = findTools(sources);
  const counts = new Map<string, number>();
  const taken = new Set<string>();
  for (const { ownName, namespace, type } of found) {
    counts.set(ownName, (counts.get(ownName) ?? 0) + 1);
    if (namespace === null && type === null) taken.add(ownName);
  }
  const upstreamNames = new Map<string, string>();
  const typeNames = new Map<ClientToolType, string>();
  const listed = found.map((tool): ListedTool => {
    const { namespace, ownName, type } = tool;
    if (namespace === null && type === null) return named(tool, ownName);
    const isAlone = type !== null || namespace === '' || counts.get(ownName) === 1;
    const path = pathOf(namespace ?? '', ownName);
    const name = freeName(isAlone ? ownName : `${namespace}__${ownName}`, path, taken);
    taken.add(name);
    if (type !== null) typeNames.set(type, name);
    else upstreamNames.set(path, name);
    return named(tool, name);
  });
  return { listed, hosted, search, upstreamNames, typeNames };
}

/**
 * Lists the members one by one: a spread followed by another member costs V8 half a microsecond, and agents have dozens
 * of tools.
 */
function named({ tool, type, namespace, ownName }: FoundTool, name: string): ListedTool {
  return { tool, type, namespace, ownName, name };
}

function findTools(sources: readonly ToolSource[]): {
  readonly found: readonly FoundTool[];
  readonly hosted: readonly HostedTool[];
  readonly search: FoundSearch | null;
} {
  const found = new Map<string, FoundTool>();
  const hosted: HostedTool[] = [];
  const searches: FoundSearch[] = [];
  const add = (tool: unknown, namespace: string | null, at: string): void => {
    if (!isObject(tool)) return;
    if (isSearchTool(tool.type)) {
      searches.push({ tool, at });
      return;
    }
    const { name } = tool;
    const type = namespace === null ? clientToolType(tool) : null;
    const isNamed =
      (tool.type === 'function' || tool.type === 'custom') && typeof name === 'string' && name !== '';
    const ownName = type ?? (isNamed ? name : null);
    if (ownName === null) {
      hosted.push({ type: nameOfType(tool.type), at });
      return;
    }
    const place = namespace === null ? `${type}\n\n${ownName}` : pathOf(namespace, ownName);
    if (!found.has(place)) found.set(place, { tool, type, namespace, ownName });
  };
  for (const { tools, at } of sources) {
    listOf(tools).forEach((tool, index) => {
      const path = `${at}[${index}]`;
      if (!isObject(tool) || tool.type !== 'namespace' || !Array.isArray(tool.tools)) {
        add(tool, null, path);
        return;
      }
      const namespace = textOf(tool.name);
      tool.tools.forEach((inner, place) => {
        add(inner, namespace, `${path}.tools[${place}]`);
      });
    });
  }
  return { found: [...found.values()], hosted, search: searches[0] ?? null };
}

/** Returns the desired name in a form that every upstream takes, with a suffix if another tool has that name. */
function freeName(wish: string, path: string, taken: ReadonlySet<string>): string {
  const legal = wish.replace(illegal, '_').slice(0, longestName);
  let name = legal;
  for (let attempt = 0; taken.has(name); attempt++) {
    const suffix = hashOf(`${path}\n${attempt}`).slice(0, suffixLength);
    name = `${legal.slice(0, longestName - suffixLength - 1)}_${suffix}`;
  }
  return name;
}

function pathOf(namespace: string, name: string): string {
  return `${namespace}\n${name}`;
}

/** Returns a tool's name at the upstream, for a call or a choice. Names that are in no list stay unchanged. */
export function upstreamName({ upstreamNames }: ToolList, namespace: unknown, name: string): string {
  return typeof namespace === 'string' ? (upstreamNames.get(pathOf(namespace, name)) ?? name) : name;
}

/**
 * Returns the client's names of its tools in namespaces or with types of their own, by their names at the upstream;
 * undefined if there are none.
 */
export function clientTools({ listed }: ToolList): ReadonlyMap<string, ClientTool> | undefined {
  const tools = new Map<string, ClientTool>();
  for (const { namespace, ownName, name, type } of listed)
    if (namespace !== null || type !== null) tools.set(name, { namespace, name: ownName, type });
  return tools.size === 0 ? undefined : tools;
}

/**
 * Describes the results of a search for tools. The tools themselves are declared with the client's others.
 * @param tools of any shape
 */
export function foundTools(list: ToolList, tools: unknown): string {
  const { found } = findTools([{ tools, at: '' }]);
  if (found.length === 0) return 'No tools were found.';
  const names = found.map(({ namespace, ownName }) => upstreamName(list, namespace, ownName));
  return `These tools can be called now: ${names.join(', ')}`;
}

/** Schemas that are nested deeper are not examined. */
const deepest = 32;

/** Decodes a tool of a client's list. */
export function decodeTool({ tool, type, name }: ListedTool): Tool {
  if (type !== null) return functionOf(tool, type, name);
  const description = textOrNull(tool.description);
  if (tool.type === 'custom') {
    const { format } = tool;
    const custom = { format: isObject(format) && format.type !== 'text' ? format : null };
    return { name, description, parameters: null, strict: null, custom };
  }
  const parameters = isObject(tool.parameters) ? tool.parameters : null;
  const isUnsaid = tool.strict === undefined && parameters !== null;
  const strict = isUnsaid && isStrictByDefault(parameters) ? true : flagOrNull(tool.strict);
  return { name, description, parameters, strict };
}

/**
 * Decodes `tool_choice`. The choice of a tool that only an upstream of the protocol runs is left out with the tool.
 * @param list the client's tools
 * @throws {GatewayError} for an unknown form
 */
export function decodeToolChoice(choice: unknown, list: ToolList, leftOut: Set<string>): ToolChoice | null {
  if (choice === undefined || choice === null) return null;
  if (choice === 'none' || choice === 'auto' || choice === 'required') return { mode: choice };
  if (typeof choice === 'string')
    throw invalidValue('tool_choice', 'expected "none", "auto", "required" or an object');
  if (!isObject(choice)) throw untranslatable('tool_choice');
  if (choice.type === 'allowed_tools') return decodeAllowed(choice, list, leftOut);
  const name = chosenName(choice, 'tool_choice', list);
  if (name !== null) return { mode: 'named', name };
  if (list.search !== null && isSearchTool(choice.type)) return null;
  leftOut.add('tool_choice');
  return null;
}

function decodeAllowed(choice: JsonObject, list: ToolList, leftOut: Set<string>): ToolChoice {
  const names: string[] = [];
  const tools = listOf(choice.tools);
  tools.forEach((tool, index) => {
    const at = `tool_choice.tools[${index}]`;
    if (!isObject(tool)) throw untranslatable(at);
    const name = chosenName(tool, at, list);
    if (name !== null) names.push(name);
    else leftOut.add('tool_choice');
  });
  // If the upstream's own tools are left out, no tool remains that may be called.
  if (names.length === 0 && tools.length > 0) return { mode: 'none' };
  return { mode: 'allowed', names, required: choice.mode === 'required' };
}

/** Returns the name at the upstream of a chosen tool; null if only an upstream of the protocol runs it. */
function chosenName(choice: JsonObject, at: string, list: ToolList): string | null {
  if (choice.type !== 'function' && choice.type !== 'custom') {
    const type = clientToolTypes.find((each) => each === choice.type);
    return (type && list.typeNames.get(type)) ?? null;
  }
  if (typeof choice.name === 'string') return upstreamName(list, choice.namespace, choice.name);
  throw missingValue(`${at}.name`, 'a string');
}

/**
 * Tells whether a tool without a `strict` member is strict. By the protocol's default it is if its schema allows that:
 * every object is closed, and all of its properties are required.
 * @param parameters JSON Schema of the arguments
 */
function isStrictByDefault(parameters: JsonObject): boolean {
  return parameters.type === 'object' && isClosed(parameters, deepest);
}

function isClosed(schema: unknown, levels: number): boolean {
  if (levels === 0) return false;
  if (Array.isArray(schema)) return schema.every((each) => isClosed(each, levels - 1));
  if (!isObject(schema)) return false;
  if (schema.oneOf !== undefined || schema.allOf !== undefined) return false;
  const { properties, required } = schema;
  if (schema.type === 'object' || properties !== undefined) {
    if (schema.additionalProperties !== false || !isObject(properties)) return false;
    for (const name of Object.keys(properties)) {
      if (!Array.isArray(required) || !required.includes(name)) return false;
      if (!isClosed(properties[name], levels - 1)) return false;
    }
  }
  if (schema.items !== undefined && !isClosed(schema.items, levels - 1)) return false;
  if (schema.anyOf !== undefined && !isClosed(schema.anyOf, levels - 1)) return false;
  const definitions = schema.$defs ?? schema.definitions ?? {};
  return isObject(definitions) && Object.values(definitions).every((each) => isClosed(each, levels - 1));
}
