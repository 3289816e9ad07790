import { OpenAiError } from './openai-error.js';
import type { Item } from './realtime-items.js';

const mostItems = 1000;

/** The items of a session in their order; of too many the oldest are dropped. */
export class Conversation {
  readonly #items: Item[] = [];

  get items(): readonly Item[] {
    return this.#items;
  }

  get lastId(): string | null {
    return this.#items.at(-1)?.id ?? null;
  }

  /**
   * Puts an item behind another one.
   * @param after the id of that one, `root` for the very beginning, null for the end
   * @returns the id of the item before it
   * @throws OpenAiError where there is no such item, or one of the same id
   */
  insert(item: Item, after: string | null = null): string | null {
    if (this.#items.some(({ id }) => id === item.id)) {
      throw new OpenAiError(
        400,
        `Error adding item: an item with id '${item.id}' already exists.`,
        'item.id',
        'item_create_duplicate_id',
      );
    }
    const at = after === 'root' ? 0 : after === null ? this.#items.length : this.#place('create', after) + 1;
    const before = this.#items[at - 1]?.id ?? null;
    this.#items.splice(at, 0, item);
    if (this.#items.length > mostItems) {
      this.#items.shift();
    }
    return before;
  }

  /** @throws OpenAiError */
  find(what: 'retrieve' | 'truncate', id: string): Item {
    return this.#items[this.#place(what, id)] as Item;
  }

  /** @throws OpenAiError */
  delete(id: string): void {
    this.#items.splice(this.#place('delete', id), 1);
  }

  /** Puts an item in the place of that with its id, if it is still there. */
  replace(item: Item): void {
    const at = this.#items.findIndex(({ id }) => id === item.id);
    if (at >= 0) {
      this.#items[at] = item;
    }
  }

  #place(what: 'create' | 'retrieve' | 'truncate' | 'delete', id: string): number {
    const at = this.#items.findIndex((item) => item.id === id);
    if (at < 0) {
      const param = what === 'create' ? 'previous_item_id' : 'item_id';
      const message = `Cannot ${what} the item: there is no item with id '${id}'.`;
      throw new OpenAiError(400, message, param, `item_${what}_invalid_item_id`);
    }
    return at;
  }
}
