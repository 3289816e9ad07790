import { test } from 'tap';
import { Tended, TendList } from '../../src/http/upkeep.js';
import { fc } from '../support/seed.js';

class Counted extends Tended {
  times = 0;
  leaves = false;

  constructor(readonly list: TendList) {
    super();
  }

  override onFault(_where: string, fault: unknown): void {
    throw fault;
  }

  override tend(): void {
    this.times++;
    if (this.leaves) this.list.remove(this);
  }
}

test('every member is looked after once a round, and may leave in it', async (t) => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(7), fc.constantFrom('add', 'remove', 'leave'))), (steps) => {
      const list = new TendList();
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
        list.tend();
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
