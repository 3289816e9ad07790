import { openLabels, otherLabel } from './families.js';

/** A status is looked up as the number that it is; what is shown is always text. */
export type LabelValue = string | number;

/** Stands for the place of a series that was not looked up yet. */
export const noPlace = -1;
/** The first place of those that are shared: from here on downwards. */
const firstShared = -2;

/** The way to a series, one level for each label; at the last one its number. */
type Level = Map<LabelValue, Level | number>;

/** Part of the room of a family that is kept for series with `other` in them. */
const shareForOther = 1 / 8;

/**
 * Numbers the series of a family, from 0 on in the order in which they were first seen, and never more than `limit`
 * of them. Series for which there is no room share others: first those that differ only in the labels whose values
 * come from a config, which then are `other`, and when even these are too many one whose labels are all `other`.
 *
 * A series that has a number keeps it, and one that has been refused is refused for ever. So no counter goes down.
 */
export class SeriesTable {
  /** Labels of a series. */
  readonly width: number;
  readonly limit: number;
  /** Label values, series after series. */
  readonly labels: string[] = [];
  /** How often something was found to have no series of its own. */
  overflowed = 0;
  readonly #names: readonly string[];
  readonly #limitOfOwn: number;
  readonly #root: Level = new Map();
  #size: number;

  /**
   * @param names of the labels, at most four
   * @param limit at least 1
   */
  constructor(names: readonly string[], limit: number) {
    this.#names = names;
    this.width = names.length;
    // The only series of a family without labels is there from the start.
    this.limit = names.length === 0 ? 1 : limit;
    this.#size = names.length === 0 ? 1 : 0;
    this.#limitOfOwn = limit - 1 - Math.floor(limit * shareForOther);
  }

  get size(): number {
    return this.#size;
  }

  /** The number of a series. Takes as many values as there are labels, and allocates nothing for one that is known. */
  find(a: LabelValue = '', b: LabelValue = '', c: LabelValue = '', d: LabelValue = ''): number {
    return this.numberAt(this.placeOf(a, b, c, d));
  }

  /**
   * The place of a series, which stays the same for ever, so that nobody need look it up again: its number, or what
   * stands for the number that it shares with others.
   */
  placeOf(a: LabelValue = '', b: LabelValue = '', c: LabelValue = '', d: LabelValue = ''): number {
    if (this.width === 0) return 0;
    const known = this.#seek(a, b, c, d);
    if (known !== undefined) return known;
    return this.#size < this.#limitOfOwn ? this.#append(a, b, c, d) : firstShared - this.#share(a, b, c, d);
  }

  /** The number at a place. That of others is counted as found to be. */
  numberAt(place: number): number {
    if (place >= 0) return place;
    this.overflowed++;
    return firstShared - place;
  }

  #seek(a: LabelValue, b: LabelValue, c: LabelValue, d: LabelValue): number | undefined {
    let at = this.#root.get(a);
    if (typeof at === 'object') at = at.get(b);
    if (typeof at === 'object') at = at.get(c);
    if (typeof at === 'object') at = at.get(d);
    return at as number | undefined;
  }

  /** The number that a series shares for which there is no room. */
  #share(a: LabelValue, b: LabelValue, c: LabelValue, d: LabelValue): number {
    const [first, second, third, fourth] = this.#names;
    const otherA = folded(first, a);
    const otherB = folded(second, b);
    const otherC = folded(third, c);
    const otherD = folded(fourth, d);
    const known = this.#seek(otherA, otherB, otherC, otherD);
    if (known !== undefined) return known;
    if (this.#size < this.limit - 1) return this.#append(otherA, otherB, otherC, otherD);
    return (
      this.#seek(otherLabel, otherLabel, otherLabel, otherLabel) ??
      this.#append(otherLabel, otherLabel, otherLabel, otherLabel)
    );
  }

  #append(...all: [LabelValue, LabelValue, LabelValue, LabelValue]): number {
    const number = this.#size++;
    const values = all.slice(0, this.width);
    const last = values.pop() as LabelValue;
    let level = this.#root;
    for (const value of values) {
      let next = level.get(value) as Level | undefined;
      if (next === undefined) {
        next = new Map();
        level.set(value, next);
      }
      level = next;
    }
    level.set(last, number);
    for (const value of [...values, last]) this.labels.push(String(value));
    return number;
  }
}

function folded(name: string | undefined, value: LabelValue): LabelValue {
  return name !== undefined && openLabels.has(name) ? otherLabel : value;
}
