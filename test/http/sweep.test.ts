import { test } from 'tap';
import { SweepList, SweepMember } from '../../src/http/sweep.js';
import { fc } from '../support/seed.js';

class Counted extends SweepMember {
  times = 0;
  leaves = false;

  constructor(readonly list: SweepList) {
    super();
  }

  override onFault(_where: string, fault: unknown): void {
    throw fault;
  }

  override onSweep(): void {
    this.times++;
    if (this.leaves) this.list.remove(this);
  }
}

test('every member is met once in a sweep, and may leave in it', async (t) => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(7), fc.constantFrom('add', 'remove', 'leave'))), (steps) => {
      const list = new SweepList();
      const all = Array.from({ length: 8 }, () => new Counted(list));
      const members = new Set<Counted>();
      const expected = new Map(all.map((one) => [one, 0]));
      for (const [index, step] of steps) {
        const one = all[index] as Counted;
        one.leaves = step === 'leave';
        if (step === 'remove') list.remove(one);
        else list.add(one);
        if (step === 'remove') members.delete(one);
        else members.add(one);
        list.sweep(0);
        for (const member of members) {
          expected.set(member, (expected.get(member) ?? 0) + 1);
          if (member.leaves) members.delete(member);
        }
        for (const other of all) if (other.times !== expected.get(other)) return false;
      }
      return true;
    }),
  );
  t.pass('held for every sequence');
});

class Probe extends SweepMember {
  times: number[] = [];
  readonly #leave: SweepList | null;
  constructor(leave: SweepList | null = null) {
    super();
    this.#leave = leave;
  }
  override onFault(_where: string, fault: unknown): void {
    throw fault;
  }
  onSweep(now: number): void {
    this.times.push(now);
    this.#leave?.remove(this);
  }
}

test('every member hears of the time once, until it leaves', async (t) => {
  const list = new SweepList();
  const probes = [new Probe(), new Probe(), new Probe()];
  for (const probe of probes) list.add(probe);
  list.add(probes[0] as Probe);
  list.sweep(1);
  list.remove(probes[1] as Probe);
  list.remove(probes[1] as Probe);
  list.sweep(2);
  t.same(
    probes.map(({ times }) => times),
    [[1, 2], [1], [1, 2]],
  );
  for (const probe of probes) list.remove(probe);
  list.add(probes[1] as Probe);
  list.sweep(3);
  t.same(
    probes.map(({ times }) => times),
    [
      [1, 2],
      [1, 3],
      [1, 2],
    ],
  );
});

test('a member that leaves in a sweep keeps no other from it', async (t) => {
  const list = new SweepList();
  const probes = [new Probe(), new Probe(list), new Probe(list), new Probe()];
  for (const probe of probes) list.add(probe);
  list.sweep(1);
  list.sweep(2);
  t.same(
    probes.map(({ times }) => times),
    [[1, 2], [1], [1], [1, 2]],
  );
});
