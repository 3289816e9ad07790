import {
  type Holder,
  isLegalId,
  isStrangeId,
  type KeptRecord,
  writeHolder,
} from '../../conversation/kept-turns.js';
import { CLOSE_BRACKET, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE } from '../../wire/bytes.js';
import { isObject, type JsonObject, listOf, objectOf, parseJson, parseObject } from '../../wire/json.js';
import {
  afterColon,
  contains,
  endOfPlain,
  endOfValue,
  mostDepth,
  needleOf,
  skipSpace,
  standsAt,
  withoutMembers,
} from '../../wire/json-skip.js';
import { eventEnd, eventObject, lastEventEnd } from '../../wire/sse.js';

/*
 * Containers, in which an upstream runs code (https://platform.openai.com/docs/guides/tools-code-interpreter). A tool
 * names one, or the upstream continues in the container of an earlier item. Items of an answer contain the id of
 * theirs.
 */

/** The JSON of a tool that runs in a container has one of these, unless its letters are escaped. */
const toolWords = ['code_interpreter', '"shell"', '\\u'];
const idKey = needleOf('"container_id"');
/** Prefix of the events with an item. */
const itemEvent = 'response.output_item.';
const ofTools: ReadonlySet<string> = new Set(['tools']);
const ofInput: ReadonlySet<string> = new Set(['input']);

const toolsName = Buffer.from('tools');
const inputName = Buffer.from('input');

/**
 * Whether a tool of a request may run in a container: one of its own, or one that an item of its input brings, as
 * `additional_tools` and `tool_search_output` do.
 * @param tools the request's own, as JSON; null for none
 * @param itemTools whether an item brings any. Nearly none does, and the body's check has found out on its way: a walk
 * of its own would cost as much as that check
 */
export function mayRunCode(body: Buffer, tools: Buffer | null, itemTools: boolean): boolean {
  return (tools !== null && namesTool(tools)) || (itemTools && itemsMayRunCode(body));
}

function namesTool(tools: Buffer): boolean {
  return toolWords.some((word) => tools.includes(word));
}

/** Values are passed over, and not read. */
function itemsMayRunCode(body: Buffer): boolean {
  const input = memberOf(body, skipSpace(body, 0), inputName).value;
  if (input === 'unclear') return true;
  if (input === null || body[input] !== OPEN_BRACKET) return false;
  for (let at = input; body[at] === OPEN_BRACKET || body[at] === COMMA; ) {
    const item = skipSpace(body, at + 1);
    if (body[item] === CLOSE_BRACKET) return false;
    if (body[item] === OPEN_BRACE) {
      const { value: tools, end } = memberOf(body, item, toolsName);
      if (tools === 'unclear') return true;
      if (tools !== null && namesTool(body.subarray(tools, end))) return true;
      at = end;
    } else {
      // An upstream may pass over what is no item.
      const end = endOfValue(body, item, mostDepth);
      if (end === -1) return true;
      at = skipSpace(body, end);
    }
  }
  return false;
}

/** Where the value of a member begins, and what follows its object. */
interface FoundMember {
  /** Null for none; unclear where a name has escapes. */
  readonly value: number | 'unclear' | null;
  readonly end: number;
}

/** @param object where it opens */
function memberOf(body: Buffer, object: number, name: Buffer): FoundMember {
  let found: number | null = null;
  let at = skipSpace(body, object + 1);
  while (body[at] === QUOTE) {
    const close = endOfPlain(body, at + 1);
    const value = close === -1 ? -1 : afterColon(body, close);
    const end = value === -1 ? -1 : endOfValue(body, value, mostDepth);
    if (end === -1) return { value: 'unclear', end: -1 };
    if (close - at - 1 === name.length && standsAt(body, at + 1, name)) found = value;
    at = skipSpace(body, end);
    if (body[at] === COMMA) at = skipSpace(body, at + 1);
  }
  return { value: found, end: skipSpace(body, at + 1) };
}

/** @returns ids of the containers that a request names */
export function containersIn(body: Buffer): readonly string[] {
  const own = withoutMembers(body, ofTools)?.taken.get('tools');
  if (!(own !== undefined && namesTool(Buffer.from(own))) && !itemsMayRunCode(body)) return [];
  const input = parseJson(withoutMembers(body, ofInput)?.taken.get('input') ?? 'null');
  const items = listOf(input).map(objectOf);
  const lists = [parseJson(own ?? 'null'), ...items.map((item) => item.tools)];
  const tools = lists.flatMap((list) => listOf(list).map(objectOf));
  // Without a tool for it, no request continues in a container.
  if (!tools.some(({ type }) => type === 'code_interpreter' || type === 'shell')) return [];
  const ids = [
    ...tools.flatMap((tool) => idsIn(tool.container, tool)),
    ...items.flatMap((item) => idsIn(item.container_id, item)),
  ];
  return [...new Set(ids)];
}

function idsIn(id: unknown, { environment }: JsonObject): readonly string[] {
  return [id, objectOf(environment).container_id].filter(
    (each): each is string => typeof each === 'string' && (isLegalId(each) || isStrangeId(each)),
  );
}

/** @returns records of the containers in which items of a run of events, or of a whole answer, ran */
export function containersOf(run: Buffer, isStream: boolean, holder: Holder): readonly KeptRecord[] {
  if (!contains(run, idKey)) return [];
  const items = isStream ? itemsOf(run) : listOf(parseObject(run.toString('utf8'))?.output);
  const ids = items.map(objectOf).flatMap((item) => idsIn(item.container_id, item));
  return ids.filter(isLegalId).map((id) => ({ id, value: writeHolder(holder, 'responses') }));
}

function itemsOf(run: Buffer): readonly unknown[] {
  const items: unknown[] = [];
  let at = run.indexOf(idKey.whole);
  while (at !== -1) {
    const end = eventEnd(run, at);
    const { type, item } = eventObject(run, lastEventEnd(run, 0, at), end) ?? {};
    if (String(type).startsWith(itemEvent) && isObject(item)) items.push(item);
    at = run.indexOf(idKey.whole, end);
  }
  return items;
}
