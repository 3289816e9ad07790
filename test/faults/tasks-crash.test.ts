import t, { type Test, test } from 'tap';
import { type TaskCrashFigures, taskCrash } from '../stress/tasks.js';

function checkCrash(t: Test, figures: TaskCrashFigures): void {
  t.strictSame(figures.lost, []);
  t.strictSame(figures.doubled, []);
  t.strictSame(figures.untold, []);
  t.ok(figures.toldInVain <= figures.madeByRetry, `${figures.toldInVain} of ${figures.madeByRetry}`);
  t.equal(figures.made, figures.answered + figures.cutUpstream + figures.madeByRetry);
  t.equal(figures.heard, figures.made);
}

test('tasks in flight survive a kill of every process, and none is made twice', async (t) => {
  checkCrash(t, await taskCrash({ tasks: 20, atOnce: 8, killed: 'all' }));
});

test('tasks in flight survive the kill of one of two workers, and none is made twice', async (t) => {
  checkCrash(t, await taskCrash({ tasks: 20, atOnce: 8, killed: 'worker' }));
});

t.end();
