import { openLabels, otherLabel } from './families.js';

/** A label value. A status is looked up as a number; output is always text. */
export type LabelValue = string | number;

/** The place of a series that was not looked up yet. */
export const noPlace = -1;
/** The first place of series without a number of their own; further ones count downwards. */
const firstShared = -2;

/** The lookup tree of series: one level per label, with numbers at the last. */
type Level = Map<LabelValue, Level | number>;

/** Fraction of a family's series reserved for those with `other` labels. */
const shareForOther = 1 / 8;

/** Decay of a series' use count per renewal: it halves in three minutes of renewals. */
const usesDecay = 0.98;
/** A series is replaced by one that is used more than this many times as much. */
const busierFactor = 2;
/** Most series replaced in one renewal, since it blocks the event loop. */
const maxReplaced = 256;

/** A series that shares a number with others. */
interface Sharing {
  /** Null for series that are too many to be told apart. */
  readonly labels: readonly LabelValue[] | null;
  readonly number: number;
  uses: number;
}

/** A replaced series: its number belongs to another series from now on. */
interface Replaced {
  readonly number: number;
  /** The number that it shares with others now; the same one if a series of `other` has taken it. */
  readonly shared: number;
}

/**
 * Numbers the series of a family from 0 in the order of their first use, at most `limit` of them. Series beyond that
 * share a number: first those that differ only in labels with values from a config, which become `other`. If even these
 * are too many, one whose labels are all `other`.
 *
 * A series keeps its number until `renew` replaces the least used series by the most used ones without a number of
 * their own.
 */
export class SeriesTable {
  /** The number of labels. */
  readonly width: number;
  readonly limit: number;
  /** Label values of all series in sequence. */
  readonly labels: string[] = [];
  /** The number of uses that had no series of their own. */
  overflowed = 0;
  /** The number of times that earlier places became invalid. */
  renewals = 0;
  readonly #names: readonly string[];
  readonly #limitOfOwn: number;
  readonly #root: Level = new Map();
  /** Like `labels`, in the form used for lookups. */
  readonly #values: LabelValue[] = [];
  /** The decayed use count of each series. */
  readonly #uses: Float64Array;
  /** Shared numbers, which are never replaced. */
  readonly #shared = new Set<number>();
  /** The series at places from `firstShared` downwards. */
  #sharing: Sharing[] = [];
  #sharingRoot: Level = new Map();
  /** Places of the series that are not told apart, by the number that they share. */
  readonly #merged = new Map<number, number>();
  #size: number;

  /**
   * @param names names of the labels, at most four
   * @param limit at least 1
   */
  constructor(names: readonly string[], limit: number) {
    this.#names = names;
    this.width = names.length;
    // The only series of a family without labels exists from the start.
    this.limit = names.length === 0 ? 1 : limit;
    this.#size = names.length === 0 ? 1 : 0;
    this.#limitOfOwn = limit - 1 - Math.floor(limit * shareForOther);
    this.#uses = new Float64Array(this.limit);
  }

  get size(): number {
    return this.#size;
  }

  /** Returns the number of a series, from as many values as there are labels. Allocates nothing for a known series. */
  find(a: LabelValue = '', b: LabelValue = '', c: LabelValue = '', d: LabelValue = ''): number {
    return this.numberAt(this.placeOf(a, b, c, d));
  }

  /**
   * Returns the place of a series: its number, or a stand-in for the number that it shares. It stays valid until
   * `renewals` grows, so callers may cache it.
   */
  placeOf(a: LabelValue = '', b: LabelValue = '', c: LabelValue = '', d: LabelValue = ''): number {
    if (this.width === 0) return 0;
    const known = seek(this.#root, a, b, c, d);
    if (known !== undefined) return known;
    if (this.#size < this.#limitOfOwn) return this.#append(a, b, c, d);
    return seek(this.#sharingRoot, a, b, c, d) ?? this.#let(a, b, c, d);
  }

  /**
   * Returns the number at a place, and counts its use.
   * @param uses the amount of use: calls, tokens or whatever the family counts
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
   * Replaces the recently least used series by the most used ones without a number of their own.
   * @returns the replaced series; their numbers belong to other series by then, except one that made room for the series
   * that it shares
   */
  renew(): Replaced[] {
    const replaced = this.#giveWay();
    if (replaced.length > 0 || this.#sharing.length >= this.limit) this.#forgetSharing();
    for (let number = 0; number < this.#size; number++) (this.#uses[number] as number) *= usesDecay;
    for (const sharing of this.#sharing) sharing.uses *= usesDecay;
    return replaced;
  }

  /**
   * `renew`, with a callback for the counts of each replaced series.
   * @param pass moves the counts of a number to another one
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
      if (most > busierFactor * (uses[number] as number) && !this.#shared.has(number)) idle.push(number);
    idle.sort((a, b) => (uses[a] as number) - (uses[b] as number));
    const replaced: Replaced[] = [];
    for (const number of idle.slice(0, maxReplaced)) {
      const busier = eager[replaced.length];
      if (busier === undefined || busier.uses <= busierFactor * (uses[number] as number)) break;
      // A series replaced just before may share this number.
      if (!this.#shared.has(number)) replaced.push({ number, shared: this.#replace(number, busier) });
    }
    return replaced;
  }

  /** Gives a number to a series that had none. @returns the number that the replaced series shares now */
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

  /** Keeps the busier half of the series that share numbers. The places of all of them change. */
  #forgetSharing(): void {
    const kept = this.#sharing
      .filter(({ labels }) => labels !== null && typeof seek(this.#root, ...labels) !== 'number')
      .sort((a, b) => b.uses - a.uses)
      .slice(0, Math.floor(this.limit / 2));
    this.#sharing = [];
    this.#sharingRoot = new Map();
    this.#merged.clear();
    for (const { labels, number, uses } of kept) this.#addSharing(labels, number, uses);
    this.renewals++;
  }

  /** @returns the place of a series that has to share a number */
  #let(...all: [LabelValue, LabelValue, LabelValue, LabelValue]): number {
    const number = this.#share(...all);
    // It may itself be a shared series, as received from another process.
    if (seek(this.#root, ...all) !== undefined) return number;
    if (this.#sharing.length < this.limit) return this.#addSharing(all.slice(0, this.width), number, 0);
    const known = this.#merged.get(number);
    if (known !== undefined) return known;
    const place = this.#addSharing(null, number, 0);
    this.#merged.set(number, place);
    return place;
  }

  #addSharing(labels: readonly LabelValue[] | null, number: number, uses: number): number {
    const place = firstShared - (this.#sharing.push({ labels, number, uses }) - 1);
    if (labels !== null) setLeaf(this.#sharingRoot, labels, place);
    return place;
  }

  /** The number that a series without room shares. */
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

/** Looks up a series by up to four labels. Stops at the number, and ignores further labels. */
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

/** Removes a series from the tree, with the levels that become empty. */
function removeLeaf(root: Level, values: readonly LabelValue[]): void {
  const [value = '', ...more] = values;
  const below = root.get(value);
  if (typeof below === 'object') removeLeaf(below, more);
  if (typeof below !== 'object' || below.size === 0) root.delete(value);
}

function folded(name: string | undefined, value: LabelValue): LabelValue {
  return name !== undefined && openLabels.has(name) ? otherLabel : value;
}
