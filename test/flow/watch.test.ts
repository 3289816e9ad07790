import { test } from 'tap';
import { Watched, WatchList } from '../../src/flow/watch.js';

class Probe extends Watched {
  ticks: number[] = [];
  readonly #leave: WatchList | null;
  constructor(leave: WatchList | null = null) {
    super();
    this.#leave = leave;
  }
  override onFault(_where: string, fault: unknown): void {
    throw fault;
  }
  onTick(now: number): void {
    this.ticks.push(now);
    this.#leave?.remove(this);
  }
}

test('everybody in the list hears of the time, until he leaves', async (t) => {
  const list = new WatchList();
  const probes = [new Probe(), new Probe(), new Probe()];
  for (const probe of probes) list.add(probe);
  list.add(probes[0] as Probe);
  t.equal(list.size, 3, 'nobody is in it twice');
  list.tick(1);
  list.remove(probes[1] as Probe);
  list.remove(probes[1] as Probe);
  list.tick(2);
  t.same(
    probes.map(({ ticks }) => ticks),
    [[1, 2], [1], [1, 2]],
  );
  for (const probe of probes) list.remove(probe);
  t.equal(list.size, 0);
  list.add(probes[1] as Probe);
  list.tick(3);
  t.same(probes[1]?.ticks, [1, 3]);
});

test('whoever leaves on a tick does not keep the others from theirs', async (t) => {
  const list = new WatchList();
  const probes = [new Probe(), new Probe(list), new Probe(list), new Probe()];
  for (const probe of probes) list.add(probe);
  list.tick(1);
  t.equal(list.size, 2);
  t.ok(probes.every(({ ticks }) => ticks.length === 1));
});
