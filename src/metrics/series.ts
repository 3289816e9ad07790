import { openLabels, otherLabel } from './families.js';

/** A status is looked up as the number that it is; what is shown is always text. */
export type LabelValue = string | number;

/** Stands for the place of a series that was not looked up yet. */
export const noPlace = -1;
/** The first place of those that have no number of their own: from here on downwards. */
const firstShared = -2;

/** The way to a series, one level for each label; at the last one its number. */
type Level = Map<LabelValue, Level | number>;

/** Part of the room of a family that is kept for series with `other` in them. */
const shareForOther = 1 / 8;

/** What a use of a series counts for later, after each renewal: half of it after three minutes of renewals by the way. */
const lasting = 0.98;
/** A series gives way to one that is used more than so many times as much. */
const timesBusier = 2;
/** Series that give way at once, at most: it takes time in which nothing else is done. */
const mostReplaced = 256;

/** A series that shares the number of others. */
interface Sharing {
  /** Null for those that are not told apart, since there are too many. */
  readonly labels: readonly LabelValue[] | null;
  readonly number: number;
  uses: number;
}

/** A series that has given way: what was counted under its number belongs to others from now on. */
interface Replaced {
  readonly number: number;
  /** The number that it shares with others now: the same one where a series of `other` has taken it. */
  readonly shared: number;
}

/**
 * Numbers the series of a family, from 0 on in the order in which they were first seen, and never more than `limit`
 * of them. Series for which there is no room share others: first those that differ only in the labels whose values
 * come from a config, which then are `other`, and when even these are too many one whose labels are all `other`.
 *
 * A series keeps its number until `renew`, where those that were used least give way to those that were used most without
 * a number of their own.
 */
export class SeriesTable {
  /** Labels of a series. */
  readonly width: number;
  readonly limit: number;
  /** Label values, series after series. */
  readonly labels: string[] = [];
  /** How often something was found to have no series of its own. */
  overflowed = 0;
  /** How often places that were told before have ceased to be those of their series. */
  renewals = 0;
  readonly #names: readonly string[];
  readonly #limitOfOwn: number;
  readonly #root: Level = new Map();
  /** As `labels`, as they are looked up. */
  readonly #values: LabelValue[] = [];
  /** How much each series was used of late. */
  readonly #uses: Float64Array;
  /** Numbers that series share: they never give way. */
  readonly #shared = new Set<number>();
  /** What places from `firstShared` on downwards stand for. */
  #sharing: Sharing[] = [];
  #sharingRoot: Level = new Map();
  /** Places of those that are not told apart, by the number that they share. */
  readonly #untold = new Map<number, number>();
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
    this.#uses = new Float64Array(this.limit);
  }

  get size(): number {
    return this.#size;
  }

  /** The number of a series. Takes as many values as there are labels, and allocates nothing for one that is known. */
  find(a: LabelValue = '', b: LabelValue = '', c: LabelValue = '', d: LabelValue = ''): number {
    return this.numberAt(this.placeOf(a, b, c, d));
  }

  /**
   * The place of a series, which stays the same until `renewals` grows, so that nobody need look it up again: its
   * number, or what stands for the number that it shares with others.
   */
  placeOf(a: LabelValue = '', b: LabelValue = '', c: LabelValue = '', d: LabelValue = ''): number {
    if (this.width === 0) return 0;
    const known = seek(this.#root, a, b, c, d);
    if (known !== undefined) return known;
    if (this.#size < this.#limitOfOwn) return this.#append(a, b, c, d);
    return seek(this.#sharingRoot, a, b, c, d) ?? this.#let(a, b, c, d);
  }

  /**
   * The number at a place. That of others is counted as found to be.
   * @param uses how much it is used: calls, tokens or whatever the family counts
   */
  numberAt(place: number, uses = 1): number {
    if (place >= 0) {
      (this.#uses[place] as number) += uses;
      return place;
    }
    this.overflowed++;
    const sharing = this.#sharing[firstShared - place] as Sharing;
    sharing.uses += uses;
    return sharing.number;
  }

  /**
   * Lets the series that were used least of late give way to those that were used most without a number of their own.
   * @returns which have; their numbers are those of other series by then, but for one that makes room for what it shares
   */
  renew(): Replaced[] {
    const replaced = this.#giveWay();
    if (replaced.length > 0 || this.#sharing.length >= this.limit) this.#forgetSharing();
    for (let number = 0; number < this.#size; number++) (this.#uses[number] as number) *= lasting;
    for (const sharing of this.#sharing) sharing.uses *= lasting;
    return replaced;
  }

  /**
   * Does that, and has what was counted passed on.
   * @returns whether any places have changed
   */
  renewInto(pass: (number: number, shared: number) => void): boolean {
    const { renewals } = this;
    for (const { number, shared } of this.renew()) if (number !== shared) pass(number, shared);
    return this.renewals !== renewals;
  }

  #giveWay(): Replaced[] {
    const uses = this.#uses;
    const eager = this.#sharing.filter(({ labels }) => labels !== null).sort((a, b) => b.uses - a.uses);
    const most = eager[0]?.uses ?? 0;
    const idle: number[] = [];
    for (let number = 0; number < this.#size; number++)
      if (most > timesBusier * (uses[number] as number) && !this.#shared.has(number)) idle.push(number);
    idle.sort((a, b) => (uses[a] as number) - (uses[b] as number));
    const replaced: Replaced[] = [];
    for (const number of idle.slice(0, mostReplaced)) {
      const busier = eager[replaced.length];
      if (busier === undefined || busier.uses <= timesBusier * (uses[number] as number)) break;
      // One that has given way before it may share this number.
      if (!this.#shared.has(number)) replaced.push({ number, shared: this.#replace(number, busier) });
    }
    return replaced;
  }

  /** Gives a number to a series that had none. @returns the one that the series before it shares now */
  #replace(number: number, { labels, uses }: Sharing): number {
    const at = number * this.width;
    const before = this.#values.slice(at, at + this.width);
    removeLeaf(this.#root, before);
    for (const [index, value] of (labels ?? []).entries()) {
      this.#values[at + index] = value;
      this.labels[at + index] = String(value);
    }
    setLeaf(this.#root, labels ?? [], number);
    this.#uses[number] = uses;
    const [a = '', b = '', c = '', d = ''] = before;
    return this.#share(a, b, c, d);
  }

  /** Keeps the busier half of the series that share numbers: all have other places from now on. */
  #forgetSharing(): void {
    const kept = this.#sharing
      .filter(({ labels }) => labels !== null && typeof seek(this.#root, ...labels) !== 'number')
      .sort((a, b) => b.uses - a.uses)
      .slice(0, Math.floor(this.limit / 2));
    this.#sharing = [];
    this.#sharingRoot = new Map();
    this.#untold.clear();
    for (const { labels, number, uses } of kept) this.#addSharing(labels, number, uses);
    this.renewals++;
  }

  /** @returns the place of a series that is to share a number */
  #let(...all: [LabelValue, LabelValue, LabelValue, LabelValue]): number {
    const number = this.#share(...all);
    // It may be one of those that others share: so another process tells of its own.
    if (seek(this.#root, ...all) !== undefined) return number;
    if (this.#sharing.length < this.limit) return this.#addSharing(all.slice(0, this.width), number, 0);
    const known = this.#untold.get(number);
    if (known !== undefined) return known;
    const place = this.#addSharing(null, number, 0);
    this.#untold.set(number, place);
    return place;
  }

  #addSharing(labels: readonly LabelValue[] | null, number: number, uses: number): number {
    const place = firstShared - (this.#sharing.push({ labels, number, uses }) - 1);
    if (labels !== null) setLeaf(this.#sharingRoot, labels, place);
    return place;
  }

  /** The number that a series shares for which there is no room. */
  #share(a: LabelValue, b: LabelValue, c: LabelValue, d: LabelValue): number {
    const number = this.#sharedNumber(a, b, c, d);
    this.#shared.add(number);
    return number;
  }

  #sharedNumber(a: LabelValue, b: LabelValue, c: LabelValue, d: LabelValue): number {
    const [first, second, third, fourth] = this.#names;
    const otherA = folded(first, a);
    const otherB = folded(second, b);
    const otherC = folded(third, c);
    const otherD = folded(fourth, d);
    const known = seek(this.#root, otherA, otherB, otherC, otherD);
    if (known !== undefined) return known;
    if (this.#size < this.limit - 1) return this.#append(otherA, otherB, otherC, otherD);
    return (
      seek(this.#root, otherLabel, otherLabel, otherLabel, otherLabel) ??
      this.#append(otherLabel, otherLabel, otherLabel, otherLabel)
    );
  }

  #append(...all: [LabelValue, LabelValue, LabelValue, LabelValue]): number {
    const number = this.#size++;
    const values = all.slice(0, this.width);
    setLeaf(this.#root, values, number);
    this.#values.push(...values);
    for (const value of values) this.labels.push(String(value));
    return number;
  }
}

/** What stands at the end of a way of up to four labels; those behind its end are not looked at. */
function seek(
  root: Level,
  a: LabelValue = '',
  b: LabelValue = '',
  c: LabelValue = '',
  d: LabelValue = '',
): number | undefined {
  let at = root.get(a);
  if (typeof at === 'object') at = at.get(b);
  if (typeof at === 'object') at = at.get(c);
  if (typeof at === 'object') at = at.get(d);
  return at as number | undefined;
}

function setLeaf(root: Level, values: readonly LabelValue[], leaf: number): void {
  let level = root;
  for (const value of values.slice(0, -1)) {
    let next = level.get(value) as Level | undefined;
    if (next === undefined) {
      next = new Map();
      level.set(value, next);
    }
    level = next;
  }
  level.set(values.at(-1) as LabelValue, leaf);
}

/** Takes a way out, with the levels of which nothing else is left. */
function removeLeaf(root: Level, values: readonly LabelValue[]): void {
  const [value = '', ...more] = values;
  const below = root.get(value);
  if (typeof below === 'object') removeLeaf(below, more);
  if (typeof below !== 'object' || below.size === 0) root.delete(value);
}

function folded(name: string | undefined, value: LabelValue): LabelValue {
  return name !== undefined && openLabels.has(name) ? otherLabel : value;
}
