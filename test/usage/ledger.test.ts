import { pino } from 'pino';
import { test } from 'tap';
import { createLedger } from '../../src/usage/ledger.js';
import { eventually } from '../support/eventually.js';
import { ledgerDouble, unreachable } from './ledger-double.js';
import { addUsage, uncounted } from './records.js';

const dayMs = 24 * 60 * 60 * 1000;

interface Told {
  readonly msg: string;
  readonly entries?: number;
}

function stage() {
  const told: Told[] = [];
  const counted = { failures: 0, dropped: 0 };
  const store = ledgerDouble();
  const settings = { ledger: true, lineDays: 2, sumDays: 3 };
  const ledger = createLedger({
    store,
    settings: () => settings,
    recorder: {
      recordSums: uncounted,
      count(family, amount) {
        if (family === 'gateway_ledger_failures_total') counted.failures += amount;
        if (family === 'gateway_ledger_dropped_total') counted.dropped += amount;
      },
    },
    log: pino({ base: null }, { write: (text: string) => void told.push(JSON.parse(text) as Told) }),
  });
  return { store, ledger, told, counted, settings };
}

test('records are kept for as many days as the config says at that moment', async (t) => {
  const { store, ledger, settings } = stage();
  addUsage(ledger);
  await ledger.flush();
  settings.lineDays = 5;
  addUsage(ledger);
  await ledger.flush();
  t.match(
    store.taken.map(({ lineTtlMs, sums }) => [lineTtlMs, sums.ttlMs]),
    [
      [2 * dayMs, 3 * dayMs],
      [5 * dayMs, 3 * dayMs],
    ],
  );
});

test('failures are counted each time, and told as they begin and end', async (t) => {
  const { store, ledger, told, counted } = stage();
  store.failure = unreachable;
  addUsage(ledger);
  void ledger.flush();
  await eventually(() => counted.failures >= 3, { everyMs: 10 });
  t.equal(told.length, 1);
  t.match(told[0]?.msg, 'the store does not take the usage of calls');
  store.failure = null;
  // Its own timers keep no process from ending.
  await eventually(() => store.taken.length > 0, { everyMs: 10 });
  t.equal(ledger.waiting(), 0);
  t.strictSame(
    told.slice(1).map(({ msg }) => msg),
    ['the store takes the usage of calls again'],
  );
  addUsage(ledger);
  await ledger.flush();
  t.equal(told.length, 2);
});

test('what is lost is counted and told', async (t) => {
  const { store, ledger, told, counted } = stage();
  store.failure = unreachable;
  addUsage(ledger);
  addUsage(ledger);
  await ledger.close(50);
  addUsage(ledger);
  t.equal(counted.dropped, 3);
  t.equal(ledger.waiting(), 0);
  t.match(
    told.filter(({ entries }) => entries !== undefined),
    [{ msg: 'the usage of calls was lost', entries: 2 }],
  );
});
