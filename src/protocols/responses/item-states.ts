import { isObject, type JsonObject, listOf, numberOrNull } from '../../wire/json.js';

/*
 * What has come of the items of a stream. Its events name an item by its number or by its id, and the last one repeats
 * all items, where upstreams are known to number or name some of them anew.
 */

type ItemKind = 'message' | 'reasoning' | 'call';

/** What has come of an item. */
export interface ItemState {
  /** Null for an item of a tool of the upstream's, and while it is not known. */
  kind: ItemKind | null;
  isDone: boolean;
  /** Number of its call, or -1 while that has not begun. */
  call: number;
  /** Arguments that came before the call's name. */
  early: string;
  /** The item of a call that ended without a name. */
  unnamed: JsonObject | null;
  hasInput: boolean;
  hasCitations: boolean;
  /** Bits of the parts whose text has come in pieces, and of those whose end has come. */
  seen: number;
  ended: number;
  /** Where the texts of its parts begin in the text of the answer. */
  readonly starts: number[];
  /** Reasoning comes as a summary or in full; of an item that has both, the first is taken. */
  reasoning: 'summary' | 'full' | null;
  /** The part of the reasoning that came last. */
  reasoningPart: number;
}

const mostParts = 31;

/** The bit of a part, by its number. */
export function bitOf(part: unknown): number {
  return 1 << Math.min(Math.max(0, numberOrNull(part) ?? 0), mostParts - 1);
}

/** What an item is, by its `type`. */
export function kindOf({ type }: JsonObject): ItemKind | null {
  if (type === 'function_call' || type === 'custom_tool_call') return 'call';
  return type === 'message' || type === 'reasoning' ? type : null;
}

/** An item of the last event, with what has come of it before. */
interface MatchedItem {
  readonly item: JsonObject;
  readonly state: ItemState;
}

/** What an item takes up beside its texts, in characters. */
const itemCharacters = 256;

export class ItemStates {
  /** Characters that are kept of all items until the stream ends. */
  held = 0;
  /** By `output_index`, or by the item's id where the upstream leaves that out. */
  readonly #states = new Map<unknown, ItemState>();
  readonly #byId = new Map<unknown, ItemState>();

  /** The state of the item that an event is about. */
  of(event: JsonObject): ItemState {
    const item = isObject(event.item) ? event.item : null;
    const key = numberOrNull(event.output_index) ?? event.item_id ?? item?.id ?? item?.call_id;
    // Some upstreams number their items and name them by their ids elsewhere.
    let state = this.#states.get(key) ?? this.#byId.get(event.item_id);
    if (state === undefined) {
      state = newState();
      this.held += itemCharacters + (typeof key === 'string' ? key.length : 0);
      this.#states.set(key, state);
      this.#identify(state, event.item_id);
    }
    if (item !== null) {
      state.kind = kindOf(item) ?? state.kind;
      this.#identify(state, item.id);
      this.#identify(state, item.call_id);
    }
    return state;
  }

  #identify(state: ItemState, id: unknown): void {
    if (typeof id !== 'string' || id === '') return;
    const count = this.#byId.size;
    if (this.#byId.set(id, state).size > count) this.held += itemCharacters + id.length;
  }

  all(): Iterable<ItemState> {
    return this.#states.values();
  }

  /**
   * Finds what has come of the items of the last event. One of which nothing has come gets a new state: it is none of
   * those known by id or number, and there are more of its kind than have come.
   * @param output of any shape
   */
  match(output: unknown): MatchedItem[] {
    const left = new Set(this.#states.values());
    const items = listOf(output);
    const found = items.map((item, index) => {
      const state = isObject(item) ? this.#known(item, index) : undefined;
      return state !== undefined && left.delete(state) ? state : null;
    });
    const spare: Record<ItemKind, ItemState[]> = { message: [], reasoning: [], call: [] };
    for (const state of [...left].reverse()) if (state.kind !== null) spare[state.kind].push(state);
    const matched: MatchedItem[] = [];
    items.forEach((item, index) => {
      const kind = isObject(item) ? kindOf(item) : null;
      if (!isObject(item) || kind === null) return;
      matched.push({ item, state: found[index] ?? spare[kind].pop() ?? this.#add(kind) });
    });
    return matched;
  }

  #known(item: JsonObject, index: number): ItemState | undefined {
    const named = this.#byId.get(item.id) ?? this.#byId.get(item.call_id);
    if (named !== undefined) return named;
    const numbered = this.#states.get(index);
    return numbered?.kind === kindOf(item) ? numbered : undefined;
  }

  #add(kind: ItemKind): ItemState {
    const state = newState();
    state.kind = kind;
    this.#states.set(state, state);
    return state;
  }
}

function newState(): ItemState {
  return {
    kind: null,
    isDone: false,
    call: -1,
    early: '',
    unnamed: null,
    hasInput: false,
    hasCitations: false,
    seen: 0,
    ended: 0,
    starts: [],
    reasoning: null,
    reasoningPart: -1,
  };
}
