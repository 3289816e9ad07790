import { type Holder, isLegalId, type KeptRecord, writeHolder } from '../../conversation/kept-turns.js';
import { isObject, type JsonObject, listOf, objectOf, parseJson, parseObject } from '../../wire/json.js';
import { contains, needleOf, withoutMembers } from '../../wire/json-skip.js';
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

/** @param tools of a request, as JSON */
export function mayRunCode(tools: Buffer): boolean {
  return toolWords.some((word) => tools.includes(word));
}

/** @returns ids of the containers that a request names */
export function containersIn(body: Buffer): readonly string[] {
  const text = withoutMembers(body, ofTools)?.taken.get('tools');
  if (text === undefined || !toolWords.some((word) => text.includes(word))) return [];
  const tools = listOf(parseJson(text)).map(objectOf);
  // Without a tool for it, no request continues in a container.
  if (!tools.some(({ type }) => type === 'code_interpreter' || type === 'shell')) return [];
  const input = parseJson(withoutMembers(body, ofInput)?.taken.get('input') ?? 'null');
  const ofItems = listOf(input).map(objectOf);
  const ids = [
    ...tools.flatMap((tool) => idsIn(tool.container, tool)),
    ...ofItems.flatMap((item) => idsIn(item.container_id, item)),
  ];
  return [...new Set(ids)];
}

function idsIn(id: unknown, { environment }: JsonObject): readonly string[] {
  return [id, objectOf(environment).container_id].filter(
    (each): each is string => typeof each === 'string' && isLegalId(each),
  );
}

/** @returns records of the containers in which items of a run of events, or of a whole answer, ran */
export function containersOf(run: Buffer, isStream: boolean, holder: Holder): readonly KeptRecord[] {
  if (!contains(run, idKey)) return [];
  const items = isStream ? itemsOf(run) : listOf(parseObject(run.toString('utf8'))?.output);
  const ids = items.map(objectOf).flatMap((item) => idsIn(item.container_id, item));
  return ids.map((id) => ({ id, value: writeHolder(holder, 'responses') }));
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
