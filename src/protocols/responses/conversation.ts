import { watchFor } from '../../conversation/answer-id.js';
import {
  type ConversationRules,
  type HeldTurn,
  type Holder,
  isHolder,
  isLegalId,
  isStrangeId,
  type Keep,
  type KeepRequest,
  type KeptRecord,
  type KeptTurn,
  namedId,
  plainKeep,
  type Recall,
  type Recalled,
  shownId,
  turnAfter,
  turnAlone,
  turnsBefore,
  turnsIn,
  writeHolder,
} from '../../conversation/kept-turns.js';
import type { GatewayError } from '../../errors.js';
import { entryOf } from '../../wire/entry-of.js';
import { memberError, parseObject } from '../../wire/json.js';
import { withoutMembers } from '../../wire/json-skip.js';
import { endOfResponse } from './by-id.js';
import { containersIn, containersOf, mayRunCode } from './containers.js';
import {
  clientItemNumber,
  idsOf,
  itemsIn,
  type KeptResponse,
  outputOf,
  readKept,
  responseOfItem,
  writeKept,
} from './kept.js';
import { mayRefer, referredTo } from './references.js';
import { joinItems, readConversation, storeOf } from './socket-message.js';
import { mayBeCompleted, storedAs } from './stored-items.js';
import { endedResponse } from './stream/rules.js';

/** Each may be an item of a different response, whose record has to be read. */
const mostReferences = 4096;

/**
 * How responses continue from earlier ones: by `previous_response_id`, by references to items in the input, by a
 * `conversation` that their upstream stores, and by the containers in which the upstream runs code.
 */
export const responsesConversation: ConversationRules = {
  mayMention: mayRefer,
  onlyContinuing: false,
  recall,
  keep,
  hold,
  heldAtEnd: null,
  heldByItems: { isUsed: mayRunCode, records: containersOf },
};

/** The same for compactions and counts. No request continues from their ids. */
export const compactConversation: ConversationRules = {
  ...responsesConversation,
  onlyContinuing: true,
  keep: () => null,
  hold: () => null,
  heldByItems: { isUsed: mayRunCode, records: () => [] },
};

/** A reference to an item, with the places of its possible records. */
interface Reference {
  /** Index in the input. */
  readonly index: number;
  readonly id: string;
  /** Indices among the records that are found. */
  readonly own: number;
  readonly held: number;
}

function recall(body: Buffer, completes: boolean): Recall | null {
  const conversation = readConversation(body);
  if (conversation === null) return null;
  const { previousId, conversationId, items } = conversation;
  const elements = itemsIn(`[${items}]`);
  const ids = new Places();
  if (previousId !== null && isStrangeId(previousId)) throw previousNotFound(previousId);
  if (previousId !== null && isLegalId(previousId)) ids.of(previousId);
  const references: Reference[] = [];
  const completed: string[] = [];
  const hasStored = completes && mayBeCompleted(body);
  for (const [index, element] of elements.entries()) {
    const id = referredTo(element);
    const named = id ?? (hasStored ? storedAs(element) : null);
    if (named === null) continue;
    if (isStrangeId(named)) throw itemNotFound(named);
    const response = responseOfItem(named);
    const held = isLegalId(named) ? named : null;
    if (id !== null) {
      const own = response === null ? -1 : ids.of(response);
      references.push({ index, id, own, held: held === null ? -1 : ids.of(held) });
    } else if (held !== null && response === null) {
      // No upstream knows an item that the gateway has made.
      completed.push(held);
      ids.of(held);
    }
    if (references.length + completed.length > mostReferences) throw tooManyReferences();
  }
  if (conversationId !== null && isStrangeId(conversationId)) throw conversationNotFound(conversationId);
  if (conversationId !== null) ids.of(conversationId);
  const containers = containersIn(body);
  if (containers.length > mostReferences) throw tooManyReferences();
  for (const id of containers) {
    if (isStrangeId(id)) throw containerNotFound(id);
    ids.of(id);
  }
  if (ids.list.length === 0 && previousId === null && references.length === 0) return null;
  const { withItems } = conversation;
  const asked = { previousId, conversationId, containers, ids, elements, references, completed, withItems };
  return {
    ids: ids.list,
    notTheirs: (ofOthers) => notTheirs(asked, ofOthers),
    before: (found) => turnsBefore(previousOf(asked, found)),
    join: (found, before, recordBytes) => join(asked, { found, before, recordBytes }),
  };
}

/** Returns the error for the first thing that a request continues from and that belongs to another key. */
function notTheirs(
  { previousId, conversationId, containers, ids, references, completed }: Asked,
  ofOthers: readonly string[],
): GatewayError | null {
  const foreign = new Set(ofOthers);
  const container = containers.find((id) => foreign.has(id));
  if (previousId !== null && foreign.has(previousId)) return previousNotFound(previousId);
  if (conversationId !== null && foreign.has(conversationId)) return conversationNotFound(conversationId);
  if (container !== undefined) return containerNotFound(container);
  const reference = references.find(({ own, held }) => foreign.has(ids.list[own === -1 ? held : own] ?? ''));
  const item = reference?.id ?? completed.find((id) => foreign.has(id));
  return item === undefined ? null : itemNotFound(item);
}

/** The ids of records to look for, without duplicates: most references of a request are to items of few responses. */
class Places {
  readonly list: string[] = [];
  readonly #places = new Map<string, number>();

  of(id: string): number {
    const known = this.#places.get(id);
    if (known !== undefined) return known;
    this.#places.set(id, this.list.length);
    return this.list.push(id) - 1;
  }

  /** @returns -1 for an id that is not looked for */
  placeOf(id: string): number {
    return this.#places.get(id) ?? -1;
  }
}

function tooManyReferences(): GatewayError {
  return memberError(
    'invalid_value',
    'input',
    `The input refers to more than ${mostReferences} items or containers: send fewer, or the items themselves.`,
  );
}

/** What a body refers to. */
interface Asked {
  readonly previousId: string | null;
  readonly conversationId: string | null;
  readonly containers: readonly string[];
  /** Ids of the records to look for. */
  readonly ids: Places;
  /** JSON texts of the input's items. */
  readonly elements: readonly string[];
  readonly references: readonly Reference[];
  /** Ids of items that their upstream completes from what it has stored. */
  readonly completed: readonly string[];
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

interface FoundRecords {
  readonly found: Found;
  /** The turns before the one that the request continues from. */
  readonly before: Found;
  readonly recordBytes: number;
}

function join(asked: Asked, { found, before, recordBytes }: FoundRecords): Recalled {
  const { previousId, conversationId, containers } = asked;
  const turns = new ReferredTurns(asked.ids, found);
  const resolved = resolve(asked, turns);
  const previous = previousOf(asked, found);
  const history = previous === null || isHolder(previous) ? null : historyOf(previous, before);
  const conversation = holderOf(asked, found, conversationId);
  const container = containers.find((id) => holderOf(asked, found, id) !== null) ?? null;
  const holder =
    (previous !== null && isHolder(previous) ? previous : resolved.holder) ??
    conversation ??
    holderOf(asked, found, container);
  const isPreviousOpen = previousId !== null && history === null;
  const unfound =
    isPreviousOpen && previousId !== null
      ? previousNotFound(previousId)
      : (resolved.unfound ?? (conversation === null ? null : conversationNotFound(conversationId ?? '')));
  const isChanged = history !== null || resolved.items !== asked.elements;
  const own = resolved.items.join(',');
  const all = joinItems(history?.items ?? '', own);
  return {
    // References that cannot be resolved stay unchanged, for the upstream that holds their items.
    body: !isChanged ? null : isPreviousOpen ? withPrevious(asked, own) : asked.withItems(all),
    holder,
    unfound: unfound ?? (container === null ? null : containerNotFound(container)),
    isBeside: false,
    turn:
      unfound !== null
        ? null
        : turnOf(asked, { history, items: resolved.items, all: () => all, turns, recordBytes }),
    echo: previousId === null ? null : { previous_response_id: previousId },
    input: unfound !== null || conversationId !== null ? null : all,
  };
}

/** Returns the holder of the conversation or container with an id; null if none is known. */
function holderOf({ ids }: Asked, found: Found, id: string | null): Holder | null {
  const record = id === null ? null : recordAt(found, ids.placeOf(id));
  return record !== null && isHolder(record) ? record : null;
}

function withPrevious({ previousId, withItems }: Asked, items: string): Buffer {
  const body = withItems(items);
  return Buffer.concat([
    Buffer.from(`{"previous_response_id":${JSON.stringify(previousId)},`),
    body.subarray(1),
  ]);
}

/** Everything that was said up to a response. */
interface History {
  readonly items: string;
  readonly previous: KeptResponse;
}

/** @returns null if a part of it is gone */
function historyOf(previous: KeptResponse, before: Found): History | null {
  const turns = before.length < previous.before.length ? null : turnsIn(before, readKept);
  return turns === null ? null : { items: [...turns, previous].map(turnItems).reduce(joinItems), previous };
}

function turnItems({ items, response }: KeptResponse): string {
  return joinItems(items.trim(), outputOf(response).slice(1, -1).trim());
}

interface TurnParts {
  readonly history: History | null;
  /** Items of the input, with its references replaced. */
  readonly items: readonly string[];
  readonly all: () => string;
  readonly turns: ReferredTurns;
  readonly recordBytes: number;
}

function turnOf({ previousId, references }: Asked, parts: TurnParts): KeptTurn | null {
  const { history, items, all, turns, recordBytes } = parts;
  const referred = turns.ids;
  if (previousId !== null && history !== null) {
    const { previous } = history;
    const said = { before: [...previous.before, previousId], bytesBefore: previous.bytes };
    return needing(turnAfter(said, { own: items.join(','), all }, recordBytes), referred);
  }
  const last = references.at(-1);
  const said = last === undefined ? null : turns.repeatedBy(items, last.own);
  if (said === null) return turnAlone(items.join(','), referred);
  const own = items.slice(said.length).join(',');
  return needing(turnAfter(said, { own, all }, recordBytes), referred);
}

/** Adds the records that hold what a client refers to: its next turn needs them, too. */
function needing(turn: KeptTurn | null, referred: readonly string[]): KeptTurn | null {
  if (turn === null || referred.length === 0) return turn;
  return { ...turn, needed: [...new Set([...turn.needed, ...referred])] };
}

/** The items of an input, with references replaced by their items. */
interface Resolved {
  readonly items: readonly string[];
  readonly holder: Holder | null;
  readonly unfound: GatewayError | null;
}

/** @throws {GatewayError} of status 400 for an item with two references */
function resolve({ elements, references }: Asked, turns: ReferredTurns): Resolved {
  if (references.length === 0) return { items: elements, holder: null, unfound: null };
  const items = [...elements];
  let holder: Holder | null = null;
  let unfound: GatewayError | null = null;
  const taken = new Set<string>();
  for (const { index, id, own, held } of references) {
    const item = own === -1 ? null : turns.item(id, own);
    if (item !== null) {
      items[index] = item;
      // The vendor refuses a second reference, too. Otherwise, a short body could expand to many copies of a kept item.
      if (taken.size === taken.add(`${own} ${clientItemNumber(id) ?? id}`).size) throw duplicateItem(id);
      continue;
    }
    holder ??= turns.holder(held);
    unfound ??= itemNotFound(id);
  }
  return { items: taken.size > 0 ? items : elements, holder, unfound };
}

/** The turns that a request refers to. Each record is read only once. */
class ReferredTurns {
  readonly #ids: Places;
  readonly #found: Found;
  readonly #records = new Map<number, KeptResponse | Holder | null>();
  readonly #outputs = new Map<number, OutputItems>();
  readonly #inputs = new Map<number, readonly string[]>();

  /** @param ids of the records found */
  constructor(ids: Places, found: Found) {
    this.#ids = ids;
    this.#found = found;
  }

  /** Ids of the turns from which items were taken. */
  get ids(): readonly string[] {
    return [...new Set([...this.#outputs.keys(), ...this.#inputs.keys()])].map(
      (at) => this.#ids.list[at] ?? '',
    );
  }

  /**
   * Finds the kept conversation that an input repeats: clients that use references send the whole conversation with
   * each turn.
   * @param items of the input
   * @param last place of the turn of the last reference
   * @returns the conversation up to that turn, if the input begins with it, and the number of its items, which need not
   * be kept again. Null if the input begins differently, or does not refer to all of it.
   */
  repeatedBy(
    items: readonly string[],
    last: number,
  ): (Pick<KeptTurn, 'before' | 'bytesBefore'> & { readonly length: number }) | null {
    const turn = this.#turn(last);
    if (turn === null) return null;
    const before = [...turn.before, this.#ids.list[last] ?? ''];
    let length = 0;
    for (const id of before) {
      const at = this.#ids.placeOf(id);
      const kept = this.#turn(at);
      if (kept === null) return null;
      const said = [...this.#inputItems(at, kept), ...this.#outputItems(at, kept).list];
      if (said.some((item, index) => items[length + index] !== item)) return null;
      length += said.length;
    }
    return { before, bytesBefore: turn.bytes, length };
  }

  /** Returns the JSON text of the item of the kept turn at a place. */
  item(id: string, at: number): string | null {
    const kept = this.#turn(at);
    if (kept === null) return null;
    const number = clientItemNumber(id);
    return number === null
      ? (this.#outputItems(at, kept).byId.get(id) ?? null)
      : (this.#inputItems(at, kept)[number] ?? null);
  }

  #turn(at: number): KeptResponse | null {
    const record = this.#record(at);
    return record === null || isHolder(record) ? null : record;
  }

  #inputItems(at: number, { items }: KeptResponse): readonly string[] {
    return entryOf(this.#inputs, at, () => itemsIn(`[${items}]`));
  }

  #outputItems(at: number, { response }: KeptResponse): OutputItems {
    return entryOf(this.#outputs, at, () => outputItemsOf(response));
  }

  holder(at: number): Holder | null {
    const record = this.#record(at);
    return record !== null && isHolder(record) ? record : null;
  }

  #record(at: number): KeptResponse | Holder | null {
    return entryOf(this.#records, at, () => recordAt(this.#found, at));
  }
}

/** JSON texts of a response's items. */
interface OutputItems {
  readonly list: readonly string[];
  readonly byId: ReadonlyMap<string, string>;
}

function outputItemsOf(response: string): OutputItems {
  const list = itemsIn(outputOf(response));
  const byId = new Map<string, string>();
  for (const element of list) {
    const id = parseObject(element)?.id;
    if (typeof id === 'string') byId.set(id, element);
  }
  return { list, byId };
}

function previousNotFound(id: string): GatewayError {
  return memberError(
    'previous_response_not_found',
    'previous_response_id',
    `Previous response with id${shownId(id)} not found.`,
  );
}

function conversationNotFound(id: string): GatewayError {
  return memberError('item_not_found', 'conversation', `Conversation with id${shownId(id)} not found.`);
}

function containerNotFound(id: string): GatewayError {
  return memberError('item_not_found', 'tools', `Container with id${shownId(id)} not found.`);
}

function itemNotFound(id: string): GatewayError {
  return memberError('item_not_found', 'input', `Item with id${shownId(id)} not found.`);
}

function duplicateItem(id: string): GatewayError {
  return memberError(
    'invalid_value',
    'input',
    `Duplicate item found with id${shownId(id)}. Remove duplicate items from your input and try again.`,
  );
}

/** A quoted text cannot occur inside another one. */
const compactionTrigger = '"compaction_trigger"';
const ofStore = new Set(['store']);

function keep({ body, recalled, newId, recordBytes }: KeepRequest): Keep | null {
  const { store, turn } =
    recalled === null
      ? firstTurn(body)
      : { store: storeOf(withoutMembers(body, ofStore)?.taken.get('store')), turn: recalled.turn };
  if (store === false) return null;
  // Otherwise, every later turn would contain the items that were compacted beside the compaction.
  if (turn === null || turn.own.includes(compactionTrigger)) return null;
  if (Buffer.byteLength(turn.own) > recordBytes) return null;
  const id = newId();
  return {
    ...plainKeep,
    id,
    isAsked: store === true,
    bytes: turn.own.length + (turn.all?.length ?? 0),
    echo: { store: true },
    needed: turn.needed,
    records(end, isStream) {
      const response = responseOf(end, isStream);
      if (response === null) return [];
      return [{ id: `resp_${id}`, value: writeKept(turn, response) }];
    },
    unkept: (end, isStream) => withoutStore(end, isStream),
  };
}

/** Returns what a request without an earlier turn says, and whether it is to be kept. */
function firstTurn(body: Buffer): { readonly store: boolean | null; readonly turn: KeptTurn | null } {
  const conversation = readConversation(body);
  if (conversation === null || conversation.previousId !== null) return { store: null, turn: null };
  const { items, store } = conversation;
  return { store, turn: turnAlone(items) };
}

/** The last event of a stream: the text before the response, the response, and the text after it. */
interface LastEvent {
  readonly before: string;
  readonly response: string;
  readonly after: string;
}

const responseMember = '"response":';

/** @returns null if the stream does not end with a response that a request may continue from */
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

/** Returns the same end, with `store` false. */
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

const ofHold = new Set(['store', 'background', 'conversation']);

function hold(body: Buffer, holder: Holder, isOnly: boolean): HeldTurn | null {
  const taken = withoutMembers(body, ofHold)?.taken;
  if (taken === undefined || taken.get('store') === 'false') return null;
  const value = writeHolder(holder, 'responses');
  // An upstream that answers in a conversation has it.
  const conversationId = namedId(taken.get('conversation'));
  const beside = conversationId === null ? [] : [conversationId];
  // A background response can be requested and cancelled while its stream is in flight.
  const isAskedFor = isOnly || taken.get('background') === 'true';
  return {
    keep: isOnly ? null : holderKeep(value, beside),
    watch: isAskedFor ? watchFor('response', (id) => recordsOf([id, ...beside], value)) : null,
  };
}

/** Returns a record for each id of a response. The ids are those of its last event, or of the whole answer. */
function recordsOf(ids: readonly string[], value: string): readonly KeptRecord[] {
  return ids.filter(isLegalId).map((id) => ({ id, value }));
}

/**
 * Returns the records of the items of a response that was made in the background, when its upstream shows it: the answer
 * to its call had none yet.
 * @param response JSON text of the whole response
 * @returns nothing before its end, since clients ask for it until then
 */
export function shownItems(response: Buffer, holder: Holder): readonly KeptRecord[] {
  if (endOfResponse(response) === null) return [];
  const { background, output } = parseObject(response.toString('utf8')) ?? {};
  return background === true ? recordsOf(idsOf({ output }), writeHolder(holder, 'responses')) : [];
}

function holderKeep(value: string, beside: readonly string[]): Keep {
  return {
    ...plainKeep,
    records(end, isStream): readonly KeptRecord[] {
      const response = isStream ? endedResponse(end, false) : end;
      const parsed = response === null ? null : parseObject(response.toString('utf8'));
      return parsed === null ? [] : recordsOf([...idsOf(parsed), ...beside], value);
    },
  };
}
