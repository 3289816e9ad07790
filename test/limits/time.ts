interface Happening {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

/** A time of its own: whatever happens, happens in a fixed order. */
export class SimulatedTime {
  now = 1_000_000;
  readonly #happenings: Happening[] = [];
  #order = 0;

  at(at: number, run: () => void): void {
    const happening = { at, order: ++this.#order, run };
    let index = this.#happenings.length;
    while (index > 0 && isAfter(this.#happenings[index - 1] as Happening, happening)) index--;
    this.#happenings.splice(index, 0, happening);
  }

  /** Lets time pass. */
  advance(ms: number): void {
    const end = this.now + ms;
    for (let next = this.#happenings[0]; next !== undefined && next.at <= end; next = this.#happenings[0]) {
      this.#happenings.shift();
      this.now = Math.max(this.now, next.at);
      next.run();
    }
    this.now = end;
  }
}

function isAfter(one: Happening, other: Happening): boolean {
  return one.at > other.at || (one.at === other.at && one.order > other.order);
}
