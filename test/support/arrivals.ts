/** What has arrived at a test's server, in order. */
export class Arrivals<Arrival> {
  readonly all: Arrival[] = [];
  readonly #waiting = new Set<() => void>();

  add(arrival: Arrival): void {
    this.all.push(arrival);
    for (const look of this.#waiting) look();
  }

  /** Resolves with the arrival of this number (from 0) once there is one. */
  at(index: number): Promise<Arrival> {
    return this.#when(() => this.all[index]);
  }

  /** Resolves with the first matching arrival, past or future. */
  first(fits: (arrival: Arrival, index: number) => boolean): Promise<Arrival> {
    return this.#when(() => this.all.find(fits));
  }

  #when(find: () => Arrival | undefined): Promise<Arrival> {
    return new Promise((resolve) => {
      const look = () => {
        const arrival = find();
        if (arrival === undefined) return;
        this.#waiting.delete(look);
        resolve(arrival);
      };
      this.#waiting.add(look);
      look();
    });
  }
}
