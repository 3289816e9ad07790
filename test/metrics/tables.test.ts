import { test } from 'tap';
import { createTables, type NumberTable } from '../../src/metrics/tables.js';
import { cases, fc } from '../support/seed.js';

/** Of all series, and how many of them have the labels of another one. */
function looked({ series, values }: NumberTable): { readonly sum: number; readonly twice: number } {
  const names = Array.from({ length: series.size }, (_, number) =>
    series.labels.slice(number * series.width, (number + 1) * series.width).join(),
  ).filter((_, number) => values[number] !== 0);
  return { sum: values.reduce((sum, each) => sum + each, 0), twice: names.length - new Set(names).size };
}

test('whichever series give way to which, nothing of what was counted is lost or told twice', (t) => {
  // Other processes tell of series that are `other` there.
  const model = fc.oneof(fc.constant('other'), fc.integer({ min: 0, max: 20 }).map(String));
  const call = fc.tuple(fc.constantFrom('chat', 'messages'), model, fc.constantFrom('200', '503'));
  const rounds = fc.array(fc.array(call, { maxLength: 30 }), { maxLength: 20 });
  fc.assert(
    fc.property(rounds, fc.integer({ min: 3, max: 24 }), (told, numbers) => {
      const tables = createTables({ numbers, histograms: 2 });
      const table = tables.counters.gateway_requests_total;
      let calls = 0;
      for (const round of told) {
        for (const [protocol, name, status] of round) table.add(1, protocol, name, status, 'ok');
        calls += round.length;
        table.renew();
        const { sum, twice } = looked(table);
        if (sum !== calls || twice > 0) return false;
      }
      return true;
    }),
    { numRuns: cases(300) },
  );
  t.pass('for all of them');
  t.end();
});
