import { test } from 'tap';
import { CallIds } from '../../../src/protocols/generate-content/call-ids.js';

test('a result without an id is of the first open call of its function in the latest turn', async (t) => {
  const ids = new CallIds();
  ids.beginTurn();
  const early = ids.ofCall('f', null);
  ids.beginTurn();
  const named = ids.ofCall('f', 'own');
  const first = ids.ofCall('f', null);
  const second = ids.ofCall('f', null);
  const other = ids.ofCall('g', null);
  t.same(
    [0, 1, 2, 3].map(() => ids.ofResult('f', null)),
    [first, second, named, early],
    'calls whose id the client made wait for it longer',
  );
  t.equal(ids.ofResult('g', null), other);
  t.equal(ids.ofResult('f', null), '', 'there is no other');
  const last = ids.ofCall('f', null);
  t.equal(ids.ofResult('f', null), last, 'a call after the results');
});

test('a result with an id takes its call out, under both of its keys', async (t) => {
  const ids = new CallIds();
  const made = ids.ofCall('f', null);
  ids.ofCall('f', 'a');
  t.equal(ids.ofResult('f', made), made);
  t.equal(ids.ofResult('f', null), 'a');
  t.equal(ids.ofResult('f', null), '');
  t.equal(ids.ofResult('f', 'a'), 'a', 'an id of the client’s own is kept');
  t.equal(ids.ofResult('f', 'unknown'), 'unknown');
});

test('a result with an id that no call has is of a call without an id', async (t) => {
  const ids = new CallIds();
  ids.beginTurn();
  ids.ofCall('f', 'own');
  const [first, second] = [ids.ofCall('f', null), ids.ofCall('f', null)];
  const other = ids.ofCall('g', null);
  t.equal(ids.ofResult('g', 'made-3'), other);
  t.equal(ids.ofResult('f', 'made-1'), first);
  t.equal(ids.ofResult('f', 'made-2'), second);
  t.equal(ids.ofResult('f', 'made-4'), 'made-4', 'a call with another id is not taken');
  t.equal(ids.ofResult('f', 'own'), 'own');
  t.equal(ids.ofResult('f', 'own'), 'own', 'a second result of a call stays its own');
});

test('one id of several calls', async (t) => {
  const ids = new CallIds();
  ids.ofCall('f', 'a');
  ids.beginTurn();
  ids.ofCall('g', 'a');
  t.equal(ids.ofResult('g', 'a'), 'a');
  t.equal(ids.ofResult('g', null), '', 'the later one was answered');
  t.equal(ids.ofResult('f', null), 'a');
});

test('a great many calls are matched with their results', async (t) => {
  // To look at each open call for each result would be 5,000,000,000 looks.
  const count = 100_000;
  const ids = new CallIds();
  const calls: string[] = [];
  for (let number = 0; number < count; number++) {
    if (number % 10 === 0) ids.beginTurn();
    calls.push(ids.ofCall(number % 2 === 0 ? 'f' : `g${number}`, number % 3 === 0 ? `id-${number}` : null));
  }
  let answered = 0;
  for (let number = count - 1; number >= 0; number--) {
    const byName = number % 2 === 1;
    const id = ids.ofResult(byName ? `g${number}` : 'f', byName ? null : (calls[number] as string));
    if (id === calls[number]) answered++;
  }
  t.equal(answered, count);
  t.equal(ids.ofResult('f', null), '');
});

test('a second result with an id of the client’s own making is of the same call, but not in a later turn', async (t) => {
  const ids = new CallIds();
  ids.beginTurn();
  const [first, second] = [ids.ofCall('f', null), ids.ofCall('f', null)];
  t.same(
    ['a', 'a', 'b'].map((given) => ids.ofResult('f', given)),
    [first, first, second],
  );
  ids.beginTurn();
  const third = ids.ofCall('f', null);
  t.equal(ids.ofResult('f', 'a'), third, 'a client may name its results after the function');
});
