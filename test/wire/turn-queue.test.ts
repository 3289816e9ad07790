import { test } from 'tap';
import { TurnQueue } from '../../src/wire/steps.js';

test('work is done in order, a piece a turn', async (t) => {
  const queue = new TurnQueue();
  const done: string[] = [];
  const turn = (name: string): Promise<void> =>
    new Promise((resolve) => {
      setImmediate(() => {
        done.push(name);
        resolve();
      });
    });
  for (const name of ['a', 'b', 'c']) queue.add(() => done.push(name));
  t.same(done, [], 'nothing is done at once');
  await turn('turn 1');
  await turn('turn 2');
  queue.add(() => done.push('d'));
  await turn('turn 3');
  await turn('turn 4');
  t.same(done, ['a', 'turn 1', 'b', 'turn 2', 'c', 'turn 3', 'd', 'turn 4']);
  queue.add(() => done.push('e'));
  await turn('turn 5');
  t.equal(done.at(-2), 'e', 'what comes to an empty queue goes on');
});
