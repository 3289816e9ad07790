import { pino } from 'pino';
import { test } from 'tap';
import { createUsageWriter } from '../../src/usage/writer.js';
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
  const writer = createUsageWriter({
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
  return { store, writer, told, counted, settings };
}

test('records are kept for as many days as the config says at that moment', async (t) => {
  const { store, writer, settings } = stage();
  addUsage(writer);
  await writer.flush();
  settings.lineDays = 5;
  addUsage(writer);
  await writer.flush();
  t.match(
    store.taken.map(({ lineTtlMs, sums }) => [lineTtlMs, sums.ttlMs]),
    [
      [2 * dayMs, 3 * dayMs],
      [5 * dayMs, 3 * dayMs],
    ],
  );
});

test('failures are counted each time, and told as they begin and end', async (t) => {
  const { store, writer, told, counted } = stage();
  store.failure = unreachable;
  addUsage(writer);
  void writer.flush();
  await eventually(() => counted.failures >= 3, { everyMs: 10 });
  t.equal(told.length, 1);
  t.match(told[0]?.msg, 'the store accepts no ledger entries');
  store.failure = null;
  // Its own timers keep no process from ending.
  await eventually(() => store.taken.length > 0, { everyMs: 10 });
  t.equal(writer.waiting(), 0);
  t.strictSame(
    told.slice(1).map(({ msg }) => msg),
    ['the store accepts ledger entries again'],
  );
  addUsage(writer);
  await writer.flush();
  t.equal(told.length, 2);
});

test('what is lost is counted and told', async (t) => {
  const { store, writer, told, counted } = stage();
  store.failure = unreachable;
  addUsage(writer);
  addUsage(writer);
  await writer.close(50);
  addUsage(writer);
  t.equal(counted.dropped, 3);
  t.equal(writer.waiting(), 0);
  t.match(
    told.filter(({ entries }) => entries !== undefined),
    [{ msg: 'ledger entries were lost', entries: 2 }],
  );
});
