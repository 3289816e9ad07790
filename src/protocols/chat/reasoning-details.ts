import { mostCarried, tagOpaque } from '../../conversation/unsigned-reasoning.js';
import { isObject, type JsonObject, listOf, textOf } from '../../wire/json.js';

/*
 * OpenRouter's `reasoning_details`: a list of reasoning in texts, summaries and encrypted entries. With Gemini's and
 * Anthropic's models, it refuses the next turn of a tool loop without those that only the vendor can read
 * (https://openrouter.ai/docs/guides/best-practices/reasoning-tokens#preserving-reasoning-blocks).
 */

/** Collects the details of a message or, in pieces, of a stream. */
export class ReasoningDetails {
  #entries: JsonObject[] = [];
  #length = 0;
  /** Keys of all entries with what only the vendor can read: the end of a stream may repeat some. */
  readonly #keys = new Set<string>();
  /** All text of each kind and index. */
  readonly #texts = new Map<string, string>();

  /** Whether there is none that is in no token. */
  get isEmpty(): boolean {
    return this.#entries.length === 0;
  }

  /** @param message or its delta, whose entries continue those of the same kind and index */
  add({ reasoning_details: details }: JsonObject): void {
    for (const entry of listOf(details)) {
      if (!isObject(entry)) continue;
      if (this.#isRepeat(entry)) continue;
      const last = this.#entries.at(-1);
      const isMore = last !== undefined && continues(last, entry);
      this.#length += isMore ? lengthOfTexts(entry) : JSON.stringify(entry).length;
      // Too long to be carried.
      if (this.#length > mostCarried) continue;
      this.#note(entry);
      if (isMore) this.#entries.splice(-1, 1, joined(last, entry));
      else this.#entries.push(entry);
    }
  }

  /** Whether an entry with what only the vendor can read, and with all text beside it, is there already. */
  #isRepeat(entry: JsonObject): boolean {
    const key = keyOf(entry);
    if (key === null || !this.#keys.has(key)) return false;
    const text = wordsOf(entry);
    // The same signature may stand beside each piece of a text.
    return text === '' || text === this.#texts.get(placeOf(entry));
  }

  #note(entry: JsonObject): void {
    const key = keyOf(entry);
    if (key !== null) this.#keys.add(key);
    const text = wordsOf(entry);
    if (text === '') return;
    const place = placeOf(entry);
    this.#texts.set(place, (this.#texts.get(place) ?? '') + text);
  }

  /**
   * Returns the token for what was added, and forgets it. Null if its text says it all so far, since a signature may follow, or
   * it is too long.
   */
  takeToken(model: string): string | null {
    const entries = this.#entries;
    if (this.#length <= mostCarried && !entries.some(isOpaque)) return null;
    this.#entries = [];
    return this.#length > mostCarried ? null : tagOpaque('reasoning_details', JSON.stringify(entries), model);
  }
}

/** Whether an entry is more than text. */
function isOpaque({ type, signature }: JsonObject): boolean {
  return type === 'reasoning.encrypted' || textOf(signature) !== '';
}

/** Identifies an entry by what only the vendor can read of it. Null if it has nothing of the kind. */
function keyOf(entry: JsonObject): string | null {
  const { type, id, signature, data } = entry;
  const isSealed = type === 'reasoning.encrypted';
  const opaque = isSealed ? textOf(data) : textOf(signature);
  // The pieces of a text do not all name its id.
  return opaque === '' ? null : JSON.stringify([placeOf(entry), isSealed ? textOf(id) : '', opaque]);
}

function placeOf({ type, index }: JsonObject): string {
  return JSON.stringify([type, index]);
}

function wordsOf({ text, summary }: JsonObject): string {
  return textOf(text) + textOf(summary);
}

function continues(last: JsonObject, { type, index }: JsonObject): boolean {
  const isText = type === 'reasoning.text' || type === 'reasoning.summary';
  return isText && last.type === type && last.index === index;
}

function joined(last: JsonObject, entry: JsonObject): JsonObject {
  const given = Object.fromEntries(Object.entries(entry).filter(([, value]) => value !== null));
  const texts = ['text', 'summary'].filter((name) => name in last || name in entry);
  const whole = texts.map((name) => [name, textOf(last[name]) + textOf(entry[name])]);
  return { ...last, ...given, ...Object.fromEntries(whole) };
}

/** Returns the length of what an entry adds to the one that it continues. */
function lengthOfTexts(entry: JsonObject): number {
  return wordsOf(entry).length + textOf(entry.signature).length;
}
