import type {
  ConversationRules,
  Holder,
  Keep,
  KeepRequest,
  KeptRecord,
  KeptTurn,
  Recall,
  Recalled,
} from '../../conversation/kept-turns.js';
import { isLegalId, writeHolder } from '../../conversation/kept-turns.js';
import { GatewayError } from '../../errors.js';
import { isObject, type JsonObject, parseObject } from '../../wire/json.js';
import { elementsOf } from '../../wire/json-elements.js';
import { withoutMembers } from '../../wire/json-skip.js';
import { firstEventEnd, parseEvent } from '../../wire/sse.js';
import {
  clientItemNumber,
  idsOf,
  isHolder,
  type KeptResponse,
  outputItems,
  outputOf,
  readKept,
  responseOfItem,
  writeKept,
} from './kept.js';
import { joinItems, readConversation } from './socket-message.js';

const mention = Buffer.from('"item_reference"');
/** A turn with more before it is written with all of them in it, so that a conversation is found by few records. */
const mostBefore = 256;

/** How responses go on from earlier ones: by `previous_response_id`, and by references to items in the input. */
export const responsesConversation: ConversationRules = { mention, isShown: true, recall, keep, hold };

/** The same for compactions and counts, which nobody goes on from by their ids. */
export const compactConversation: ConversationRules = {
  mention,
  isShown: false,
  recall,
  keep: () => null,
  hold: () => null,
};

/** A reference to an item, and where its record may be. */
interface Reference {
  /** Place in the input. */
  readonly index: number;
  readonly id: string;
  /** Indices of the records among those that are found. */
  readonly own: number;
  readonly held: number;
}

function recall(body: Buffer): Recall | null {
  const conversation = readConversation(body);
  if (conversation === null) return null;
  const { previousId, items } = conversation;
  const elements = elementsOf(Buffer.from(`[${items}]`)) ?? [];
  const ids: string[] = previousId !== null && isLegalId(previousId) ? [previousId] : [];
  const references: Reference[] = [];
  for (const [index, element] of elements.entries()) {
    const id = referredTo(element);
    if (id === null) continue;
    const response = responseOfItem(id);
    const own = response === null ? -1 : ids.push(response) - 1;
    const held = isLegalId(id) ? ids.push(id) - 1 : -1;
    references.push({ index, id, own, held });
  }
  if (previousId === null && references.length === 0) return null;
  const asked = { previousId, elements, references, withItems: conversation.withItems };
  return {
    ids,
    before(found) {
      const previous = previousOf(asked, found);
      return previous === null || isHolder(previous)
        ? { ids: [], bytes: 0 }
        : { ids: previous.before, bytes: previous.bytes };
    },
    join: (found, before, renewed) => join(asked, found, before, renewed),
  };
}

/** What a body names. */
interface Asked {
  readonly previousId: string | null;
  /** JSON texts of the items of the input. */
  readonly elements: readonly string[];
  readonly references: readonly Reference[];
  readonly withItems: (items: string) => Buffer;
}

type Found = readonly (string | null)[];

function recordAt(found: Found, index: number): KeptResponse | Holder | null {
  const value = found[index] ?? null;
  return value === null ? null : readKept(value);
}

function previousOf({ previousId }: Asked, found: Found): KeptResponse | Holder | null {
  return previousId === null || !isLegalId(previousId) ? null : recordAt(found, 0);
}

/** @returns id of the item that an item of an input stands for; null for any other item */
function referredTo(element: string): string | null {
  if (!element.includes('item_reference')) return null;
  const { type, id } = parseObject(element) ?? {};
  return type === 'item_reference' && typeof id === 'string' ? id : null;
}

function join(asked: Asked, found: Found, before: Found, renewed: number): Recalled {
  const { previousId } = asked;
  const resolved = resolve(asked, found);
  const previous = previousOf(asked, found);
  const history = previous === null || isHolder(previous) ? null : historyOf(previous, before);
  const holder = previous !== null && isHolder(previous) ? previous : resolved.holder;
  const isPreviousOpen = previousId !== null && history === null;
  const unfound =
    isPreviousOpen && previousId !== null ? previousNotFound(previousId) : (resolved.unfound ?? null);
  const isChanged = history !== null || resolved.items !== asked.elements;
  const own = resolved.items.join(',');
  const all = joinItems(history?.items ?? '', own);
  return {
    // What cannot be resolved stays as it came, for whoever holds it.
    body: !isChanged ? null : isPreviousOpen ? withPrevious(asked, own) : asked.withItems(all),
    holder,
    unfound,
    turn: unfound !== null ? null : turnOf(previousId, history, { own, all, renewed }),
    echo: previousId === null ? null : { previous_response_id: previousId },
    input: unfound !== null ? null : all,
  };
}

function withPrevious({ previousId, withItems }: Asked, items: string): Buffer {
  const body = withItems(items);
  return Buffer.concat([
    Buffer.from(`{"previous_response_id":${JSON.stringify(previousId)},`),
    body.subarray(1),
  ]);
}

/** All that was said up to a response. */
interface History {
  readonly items: string;
  readonly previous: KeptResponse;
  /** When the oldest of its records was made. */
  readonly oldest: number;
}

/** @returns null when a part of it is gone */
function historyOf(previous: KeptResponse, before: Found): History | null {
  let items = '';
  let oldest = previous.at;
  for (const value of before) {
    const kept = value === null ? null : readKept(value);
    if (kept === null || isHolder(kept)) return null;
    oldest = Math.min(oldest, kept.at);
    items = joinItems(items, turnItems(kept));
  }
  if (before.length < previous.before.length) return null;
  return { items: joinItems(items, turnItems(previous)), previous, oldest };
}

function turnItems({ items, response }: KeptResponse): string {
  return joinItems(items.trim(), outputItems(response));
}

function turnOf(
  previousId: string | null,
  history: History | null,
  { own, all, renewed }: { readonly own: string; readonly all: string; readonly renewed: number },
): KeptTurn {
  if (previousId === null || history === null) return { before: [], bytesBefore: 0, own, all: null };
  const { previous, oldest } = history;
  const before = [...previous.before, previousId];
  const isRenewed = before.length >= mostBefore || oldest < renewed;
  return { before, bytesBefore: previous.bytes, own, all: isRenewed ? all : null };
}

/** The items of an input with those in their places that references stood for. */
interface Resolved {
  readonly items: readonly string[];
  readonly holder: Holder | null;
  readonly unfound: GatewayError | null;
}

function resolve({ elements, references }: Asked, found: Found): Resolved {
  if (references.length === 0) return { items: elements, holder: null, unfound: null };
  const items = [...elements];
  let holder: Holder | null = null;
  let unfound: GatewayError | null = null;
  let isChanged = false;
  // Most references of a request are to items of few responses.
  const outputs = new Map<number, ReadonlyMap<string, string>>();
  for (const { index, id, own, held } of references) {
    const item = own === -1 ? null : itemOf(id, own, found, outputs);
    if (item !== null) {
      items[index] = item;
      isChanged = true;
      continue;
    }
    const record = recordAt(found, held);
    if (record !== null && isHolder(record)) holder ??= record;
    unfound ??= itemNotFound(id);
  }
  return { items: isChanged ? items : elements, holder, unfound };
}

/** JSON text of an item of a kept turn. @param outputs what was read before, by the index of the record */
function itemOf(
  id: string,
  at: number,
  found: Found,
  outputs: Map<number, ReadonlyMap<string, string>>,
): string | null {
  const kept = recordAt(found, at);
  if (kept === null || isHolder(kept)) return null;
  const number = clientItemNumber(id);
  if (number !== null) return elementsOf(Buffer.from(`[${kept.items}]`))?.[number] ?? null;
  const known = outputs.get(at) ?? itemsById(kept.response);
  outputs.set(at, known);
  return known.get(id) ?? null;
}

function itemsById(response: string): ReadonlyMap<string, string> {
  const byId = new Map<string, string>();
  for (const element of elementsOf(Buffer.from(outputOf(response))) ?? []) {
    const id = parseObject(element)?.id;
    if (typeof id === 'string') byId.set(id, element);
  }
  return byId;
}

/** Ids are shown only where they are ones that somebody can have been given. */
function shown(id: string): string {
  return isLegalId(id) ? ` '${id}'` : '';
}

function previousNotFound(id: string): GatewayError {
  return new GatewayError('previous_response_not_found', `Previous response with id${shown(id)} not found.`, {
    param: 'previous_response_id',
  });
}

function itemNotFound(id: string): GatewayError {
  return new GatewayError('item_not_found', `Item with id${shown(id)} not found.`, { param: 'input' });
}

/** A quoted text cannot stand inside another one. */
const compactionTrigger = '"compaction_trigger"';
const ofKeep = new Set(['input', 'store']);

function keep({ body, recalled, id, model, now }: KeepRequest): Keep | null {
  const taken = withoutMembers(body, ofKeep)?.taken;
  if (taken === undefined || taken.get('store') === 'false') return null;
  const turn = recalled === null ? firstTurn(body) : recalled.turn;
  // What a compaction is made of would stand beside it in every turn that follows.
  if (turn === null || turn.own.includes(compactionTrigger)) return null;
  return {
    isAsked: taken.get('store') === 'true',
    bytes: turn.own.length + (turn.all?.length ?? 0),
    echo: { store: true },
    see: null,
    records(end, isStream) {
      const response = responseOf(end, isStream);
      if (response === null) return [];
      return [{ id: `resp_${id}`, value: recordOf(turn, { response, model, now }) }];
    },
    unkept: (end, isStream) => withoutStore(end, isStream),
  };
}

function firstTurn(body: Buffer): KeptTurn | null {
  const conversation = readConversation(body);
  if (conversation === null || conversation.previousId !== null) return null;
  return { before: [], bytesBefore: 0, own: conversation.items, all: null };
}

function recordOf(
  { before, bytesBefore, own, all }: KeptTurn,
  { response, model, now }: { readonly response: string; readonly model: string; readonly now: number },
): string {
  const bytes = (all ?? own).length + response.length;
  return all === null
    ? writeKept({ at: now, model, bytes: bytesBefore + bytes, before, items: own, response })
    : writeKept({ at: now, model, bytes, before: [], items: all, response });
}

/** The last event of a stream: what stands before the response, the response, and what stands behind it. */
interface LastEvent {
  readonly before: string;
  readonly response: string;
  readonly after: string;
}

const responseMember = '"response":';

/** @returns null where the stream does not end with a response that one may go on from */
function lastEvent(end: Buffer): LastEvent | null {
  const text = end.toString('utf8').trimEnd();
  const data = text.lastIndexOf('\ndata:');
  const name = text.lastIndexOf('event:', data);
  const at = text.indexOf(responseMember, data);
  if (data === -1 || at === -1 || !text.endsWith('}')) return null;
  const said = text.slice(Math.max(0, name), data);
  if (!said.includes('response.completed') && !said.includes('response.incomplete')) return null;
  const start = at + responseMember.length;
  return { before: text.slice(0, start), response: text.slice(start, -1), after: '}\n\n' };
}

function responseOf(end: Buffer, isStream: boolean): string | null {
  if (isStream) return lastEvent(end)?.response ?? null;
  return end.toString('utf8');
}

const ofStore = new Set(['store']);

/** The same end, which says that nothing is kept. */
function withoutStore(end: Buffer, isStream: boolean): Buffer {
  if (!isStream) return unstored(end);
  const event = lastEvent(end);
  if (event === null) return end;
  const { before, response, after } = event;
  return Buffer.concat([Buffer.from(before), unstored(Buffer.from(response)), Buffer.from(after)]);
}

function unstored(response: Buffer): Buffer {
  const rest = withoutMembers(response, ofStore)?.rest ?? [];
  return rest.length === 0
    ? response
    : Buffer.concat([Buffer.from('{'), ...rest, Buffer.from(',"store":false}')]);
}

/** The ids of a response are those of its last event, or of the whole answer. */
function hold(body: Buffer, holder: Holder): Keep | null {
  const taken = withoutMembers(body, ofKeep)?.taken;
  if (taken === undefined || taken.get('store') === 'false') return null;
  const value = writeHolder(holder);
  return {
    isAsked: false,
    bytes: 0,
    echo: null,
    see: null,
    records(end, isStream): readonly KeptRecord[] {
      const response = isStream ? endedResponse(end) : end.toString('utf8');
      const ids = response === null ? [] : idsOf(response);
      return ids.filter(isLegalId).map((id) => ({ id, value }));
    },
    unkept: (end) => end,
  };
}

/** The response that ends an upstream's stream, which may be written in any way; null for one that failed. */
function endedResponse(run: Buffer): string | null {
  for (let start = 0; start < run.length; ) {
    const next = firstEventEnd(run, start, run.length);
    const end = next === -1 ? run.length : next;
    const event = parseObject(parseEvent(run.toString('utf8', start, end)).data ?? '');
    if (event !== null && isEnd(event) && isObject(event.response)) return JSON.stringify(event.response);
    start = end;
  }
  return null;
}

function isEnd({ type }: JsonObject): boolean {
  return type === 'response.completed' || type === 'response.incomplete';
}
