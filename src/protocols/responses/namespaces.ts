import { isObject, type JsonObject, listOf } from '../../wire/json.js';
import { hashOf } from '../openai-shared/hashed-id.js';
import { nameOfType } from './refusals.js';

/*
 * Tools can stand in a namespace, which the calls of them name too. No other protocol has that, so such a tool goes
 * to the upstream under one name, and its calls come back under two: both ways lead through the client's own list.
 */

/** A function or custom tool of a client's list. */
export interface ListedTool {
  readonly tool: JsonObject;
  /** Null for one that stands in no namespace. */
  readonly namespace: string | null;
  /** Its name for the client. */
  readonly ownName: string;
  /** Its name at the upstream. */
  readonly name: string;
}

/** Something that only an upstream of the protocol can run. */
export interface HostedTool {
  readonly type: string;
  readonly at: string;
}

export interface ToolList {
  readonly listed: readonly ListedTool[];
  readonly hosted: readonly HostedTool[];
  /** Names at the upstream of the tools in namespaces, by `pathOf`. */
  readonly upstreamNames: ReadonlyMap<string, string>;
}

type FoundTool = Omit<ListedTool, 'name'>;

const longestName = 64;
const illegal = /[^A-Za-z0-9_-]/g;
const suffixLength = 8;

/**
 * Reads a client's `tools`. The same list gives the same names. A tool in a namespace keeps its own where it is legal
 * and no other tool has it.
 * @param tools of any shape
 */
export function listTools(tools: unknown): ToolList {
  const { found, hosted } = findTools(tools);
  const counts = new Map<string, number>();
  const taken = new Set<string>();
  for (const { ownName, namespace } of found) {
    counts.set(ownName, (counts.get(ownName) ?? 0) + 1);
    if (namespace === null) taken.add(ownName);
  }
  const upstreamNames = new Map<string, string>();
  const listed = found.map((tool): ListedTool => {
    const { namespace, ownName } = tool;
    if (namespace === null) return { ...tool, name: ownName };
    const wish = namespace === '' || counts.get(ownName) === 1 ? ownName : `${namespace}__${ownName}`;
    const path = pathOf(namespace, ownName);
    const name = freeName(wish, path, taken);
    taken.add(name);
    if (!upstreamNames.has(path)) upstreamNames.set(path, name);
    return { ...tool, name };
  });
  return { listed, hosted, upstreamNames };
}

function findTools(tools: unknown): { readonly found: FoundTool[]; readonly hosted: HostedTool[] } {
  const found: FoundTool[] = [];
  const hosted: HostedTool[] = [];
  const add = (tool: unknown, namespace: string | null, at: string): void => {
    if (!isObject(tool)) return;
    const { type, name } = tool;
    if ((type === 'function' || type === 'custom') && typeof name === 'string' && name !== '')
      found.push({ tool, namespace, ownName: name });
    else hosted.push({ type: nameOfType(type), at });
  };
  const all = listOf(tools);
  all.forEach((tool, index) => {
    const at = `tools[${index}]`;
    if (!isObject(tool) || tool.type !== 'namespace' || !Array.isArray(tool.tools)) {
      add(tool, null, at);
      return;
    }
    const namespace = typeof tool.name === 'string' ? tool.name : '';
    tool.tools.forEach((inner, place) => {
      add(inner, namespace, `${at}.tools[${place}]`);
    });
  });
  return { found, hosted };
}

/** The wish as every upstream takes it, with an end of its own where another tool has that name. */
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

/** The name at the upstream of a tool that a call or a choice names; names that are in no list stay as they are. */
export function upstreamName({ upstreamNames }: ToolList, namespace: unknown, name: string): string {
  return typeof namespace === 'string' ? (upstreamNames.get(pathOf(namespace, name)) ?? name) : name;
}

/** How a client calls a tool. */
export interface ClientName {
  readonly namespace: string | null;
  readonly name: string;
}

/** The client's names of the tools that it has in namespaces, by their names at the upstream; null when there are none. */
export function clientNames(tools: unknown): ReadonlyMap<string, ClientName> | null {
  if (!Array.isArray(tools) || !tools.some((tool) => isObject(tool) && tool.type === 'namespace'))
    return null;
  const names = new Map<string, ClientName>();
  for (const { namespace, ownName, name } of listTools(tools).listed)
    if (namespace !== null) names.set(name, { namespace, name: ownName });
  return names;
}
