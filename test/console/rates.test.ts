import { test } from 'tap';
import { addState, growth, rateOf, type StateWindow, secondsOf, share } from '../../src/console/rates.js';
import type { LiveState } from '../../src/metrics/live-state.js';
import { stateAt } from './page-views.js';

const requests = ({ totals }: LiveState): number => totals.requests;

function windowOf(...states: readonly LiveState[]): StateWindow {
  return states.reduce<StateWindow>(addState, []);
}

test('a rate is what was counted between the oldest and the newest state, by their seconds', async (t) => {
  const window = windowOf(stateAt(1000, 10), stateAt(3000, 10), stateAt(5000, 50));
  t.equal(secondsOf(window), 4);
  t.equal(rateOf(window, requests), 10);
});

test('states older than ten seconds no longer count', async (t) => {
  const window = windowOf(...Array.from({ length: 20 }, (_, index) => stateAt(2000 * index, 100 * index)));
  t.equal(window.length, 6);
  t.equal(secondsOf(window), 10);
});

test('no rate is known from one state alone, or after a long silence', async (t) => {
  t.equal(rateOf([], requests), null);
  t.equal(rateOf(windowOf(stateAt(1000, 10)), requests), null);
  t.equal(rateOf(windowOf(stateAt(1000, 10), stateAt(60_000, 500)), requests), null);
});

test('a state that came twice, as after a view was shown again, counts once', async (t) => {
  t.equal(windowOf(stateAt(1000, 10), stateAt(3000, 20), stateAt(3000, 20)).length, 2);
});

test('a gateway that started anew is not compared with what it was', async (t) => {
  const window = windowOf(stateAt(1000, 900, 5), stateAt(3000, 4, 2500));
  t.equal(window.length, 1);
  t.equal(rateOf(window, requests), null);
});

test('what was not there before began at zero, and what fell has no rate', async (t) => {
  t.equal(growth(undefined, 20, 10), 2);
  t.equal(growth(5, 25, 10), 2);
  t.equal(growth(25, 5, 10), null);
});

test('a share of nothing is not known', async (t) => {
  t.equal(share(0, 0), null);
  t.equal(share(1, 4), 0.25);
});
