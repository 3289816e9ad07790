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
  /** What only the vendor can read of all entries: the end of a stream may repeat some. */
  readonly #opaque = new Set<string>();

  /** Whether there is any that is in no token. */
  get isEmpty(): boolean {
    return this.#entries.length === 0;
  }

  /** @param message or its delta, whose entries continue those of the same kind and index */
  add({ reasoning_details: details }: JsonObject): void {
    for (const entry of listOf(details)) {
      if (!isObject(entry)) continue;
      const opaque = opaqueOf(entry);
      if (opaque !== '' && this.#opaque.has(opaque)) continue;
      const last = this.#entries.at(-1);
      const isMore = last !== undefined && continues(last, entry);
      this.#length += isMore ? lengthOfTexts(entry) : JSON.stringify(entry).length;
      // Too long to be carried.
      if (this.#length > mostCarried) continue;
      this.#opaque.add(opaque);
      if (isMore) this.#entries.splice(-1, 1, joined(last, entry));
      else this.#entries.push(entry);
    }
  }

  /**
   * Returns the token for what was added, and forgets it. Null if its text says it all so far, since a signature may follow, or
   * it is too long.
   */
  takeToken(model: string): string | null {
    const entries = this.#entries;
    if (this.#length <= mostCarried && !entries.some((entry) => opaqueOf(entry) !== '')) return null;
    this.#entries = [];
    return this.#length > mostCarried ? null : tagOpaque('reasoning_details', JSON.stringify(entries), model);
  }
}

/** Returns what only the vendor can read of an entry; empty if it is nothing but text. */
function opaqueOf({ type, signature, data }: JsonObject): string {
  return type === 'reasoning.encrypted' ? `${type} ${textOf(data)}` : textOf(signature);
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
function lengthOfTexts({ text, summary, signature }: JsonObject): number {
  return textOf(text).length + textOf(summary).length + textOf(signature).length;
}
