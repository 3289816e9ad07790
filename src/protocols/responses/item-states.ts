import { isObject, type JsonObject, listOf, numberOrNull } from '../../wire/json.js';

/*
 * State of the items of a stream. Its events name an item by its number or its id. The last event repeats all items,
 * and some upstreams then give some of them new numbers or ids.
 */

type ItemKind = 'message' | 'reasoning' | 'call';

/** What has arrived of an item. */
export interface ItemState {
  /** Null for an item of the upstream's own tools, and until it is known. */
  kind: ItemKind | null;
  isDone: boolean;
  /** Number of its call; -1 before the call has begun. */
  call: number;
  /** Arguments that arrived before the call's name. */
  early: string;
  /** The item of a call that ended without a name. */
  unnamed: JsonObject | null;
  hasInput: boolean;
  hasCitations: boolean;
  /** Bits of the parts whose text arrived in pieces, and of those that have ended. */
  seen: number;
  ended: number;
  /** Offsets of the texts of its parts in the text of the answer. */
  readonly starts: number[];
  /** Reasoning arrives as a summary or in full. If an item has both, the first one to arrive is used. */
  reasoning: 'summary' | 'full' | null;
  /** The last part of the reasoning. */
  reasoningPart: number;
}

const mostParts = 31;

/** Returns the bit of a part's number. */
export function bitOf(part: unknown): number {
  return 1 << Math.min(Math.max(0, numberOrNull(part) ?? 0), mostParts - 1);
}

/** Returns the kind of an item for its `type`. */
export function kindOf({ type }: JsonObject): ItemKind | null {
  if (type === 'function_call' || type === 'custom_tool_call') return 'call';
  return type === 'message' || type === 'reasoning' ? type : null;
}

/** An item of the last event, with what arrived of it earlier. */
interface MatchedItem {
  readonly item: JsonObject;
  readonly state: ItemState;
}

/** Characters that an item counts for besides its texts. */
const itemCharacters = 256;

export class ItemStates {
  /** Characters that are kept of all items until the stream ends. */
  held = 0;
  /** States by `output_index`, or by the item's id if the upstream omits it. */
  readonly #states = new Map<unknown, ItemState>();
  readonly #byId = new Map<unknown, ItemState>();

  /** Returns the state of the item of an event. */
  of(event: JsonObject): ItemState {
    const item = isObject(event.item) ? event.item : null;
    const key = numberOrNull(event.output_index) ?? event.item_id ?? item?.id ?? item?.call_id;
    // Some upstreams number an item in one event, and name it by its id in another.
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
   * Finds the states of the last event's items. An item without any gets a new state: its id and number are unknown,
   * and more items of its kind are listed than have arrived.
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
