import { test } from 'tap';
import { eventually } from '../../support/eventually.js';
import { type MetricSeries, seriesOf, sumOf } from '../../support/metrics-text.js';
import { type ConsoleGateway, startConsoleGateway } from './gateway.js';
import { startConsoleLoad } from './load.js';
import { becomes, consoleWait, noBrowser, startBrowser, visit } from './page.js';
import { statNumber, type TableNumbers, tableNumbers } from './tables.js';

/** Tiles that say something while there is a load; the others are zero most of the time. */
const busyTiles = [
  'requests-rate',
  'errors-rate',
  'first-byte',
  'duration',
  'own',
  'tokens-output-rate',
  'cost-hour',
  'memory',
  'loop-delay',
];
const calmTiles = ['open-requests', 'upstream-connections', 'ledger-waiting'];

const charts = [
  'Requests per second',
  'Time to first byte',
  'Duration',
  'Own overhead',
  'Open',
  'Tokens per second',
  'Cost per minute',
];

/** As much of a canvas as is looked at in the browser. */
interface PageCanvas {
  readonly width: number;
  readonly height: number;
  getContext(kind: '2d'): {
    getImageData(x: number, y: number, width: number, height: number): { readonly data: Uint8ClampedArray };
  };
}

/** Runs in the browser: counts the pixels that have a colour, which those of the lines have and those of the axes not. */
function colouredPixels(canvas: PageCanvas): number {
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let at = 0; at < data.length; at += 4) {
    const rgb = data.subarray(at, at + 3);
    if ((data[at + 3] ?? 0) > 128 && Math.max(...rgb) - Math.min(...rgb) > 60) count++;
  }
  return count;
}

const metricsOf = async (gateway: ConsoleGateway): Promise<string> =>
  (await gateway.admin('/metrics')).text();

const isError = ({ labels }: MetricSeries): boolean =>
  labels.status?.startsWith('5') === true || labels.outcome === 'upstream_error';
const isRefusal = ({ labels }: MetricSeries): boolean => labels.status?.startsWith('4') === true;

/** Nine decimals are what a cost is counted in. */
const nanos = (usd: number): number => Math.round(usd * 1e9);

function countsBy(text: string, label: 'model' | 'protocol'): TableNumbers {
  const counts: Record<string, { requests: number; errors: number; refusals: number }> = {};
  for (const series of seriesOf(text, 'gateway_requests_total')) {
    const name = series.labels[label] ?? '';
    counts[name] ??= { requests: 0, errors: 0, refusals: 0 };
    counts[name].requests += series.value;
    if (isError(series)) counts[name].errors += series.value;
    if (isRefusal(series)) counts[name].refusals += series.value;
  }
  return counts;
}

function countsByKey(text: string): TableNumbers {
  const family = 'gateway_key_requests_total';
  const keys = new Set(seriesOf(text, family).map(({ labels }) => labels.key ?? ''));
  return Object.fromEntries(
    [...keys].map((key) => [
      key,
      {
        requests: sumOf(text, family, { key }),
        errors: sumOf(text, family, { key, status_class: '5xx' }),
        refusals: sumOf(text, family, { key, status_class: '4xx' }),
      },
    ]),
  );
}

function countsByTarget(text: string): TableNumbers {
  const family = 'gateway_upstream_attempts_total';
  const targets = new Set(
    seriesOf(text, 'gateway_target_in_flight').map(({ labels }) => labels.target ?? ''),
  );
  return Object.fromEntries(
    [...targets].map((target) => {
      const attempts = sumOf(text, family, { target });
      const failures = attempts - sumOf(text, family, { target, result: 'ok' });
      return [target, { attempts, failures, retries: sumOf(text, 'gateway_retries_total', { target }) }];
    }),
  );
}

function spentBy(text: string): TableNumbers {
  return Object.fromEntries(
    Object.keys(countsBy(text, 'model')).map((model) => [
      model,
      {
        'tokens-input': sumOf(text, 'gateway_tokens_total', { model, kind: 'input' }),
        'tokens-output': sumOf(text, 'gateway_tokens_total', { model, kind: 'output' }),
        cost: nanos(sumOf(text, 'gateway_cost_usd_total', { model })),
      },
    ]),
  );
}

/** The same rows in the order of their names. */
const byName = (rows: TableNumbers): TableNumbers =>
  Object.fromEntries(Object.entries(rows).sort(([a], [b]) => (a < b ? -1 : 1)));

test('the overview under a load', { skip: noBrowser }, async (t) => {
  const [gateway, browser] = await Promise.all([startConsoleGateway(t, { workers: 2 }), startBrowser(t)]);
  await visit(t, browser, gateway, {}, async ({ page }) => {
    const load = startConsoleLoad(gateway);

    await t.test('tiles and charts fill while it runs', async (t) => {
      await page.getByRole('status').filter({ hasText: 'Live' }).waitFor();
      for (const tile of busyTiles) {
        await eventually(async () => (await statNumber(page, tile)) > 0, {
          what: `the tile ${tile}`,
          ...consoleWait,
        });
        t.match(await page.locator(`.stat[data-stat="${tile}"]`).innerText(), /\d/, tile);
      }
      for (const tile of calmTiles) t.ok((await statNumber(page, tile)) >= 0, tile);
      for (const title of charts) {
        const canvas = page
          .getByRole('figure')
          .filter({ has: page.getByRole('heading', { name: title, exact: true }) })
          .locator('canvas');
        await eventually(async () => (await canvas.evaluate(colouredPixels)) > 20, {
          what: `the chart ${title}`,
          ...consoleWait,
        });
        t.pass(title);
      }
    });
    await load.stop();
    t.match(Object.keys(load.statuses), ['200', '401', '404', '502'], 'what the load was to come to');

    await t.test('after it, the totals are those of /metrics', async (t) => {
      const text = await metricsOf(gateway);
      const requests = seriesOf(text, 'gateway_requests_total');
      const sum = (series: readonly MetricSeries[]) => series.reduce((all, { value }) => all + value, 0);
      const expected: Record<string, number> = {
        'requests-total': sum(requests),
        'errors-total': sum(requests.filter(isError)),
        'refusals-total': sum(requests.filter(isRefusal)),
        'tokens-input-total': sumOf(text, 'gateway_tokens_total', { kind: 'input' }),
        'tokens-cached-total': sumOf(text, 'gateway_tokens_total', { kind: 'cached' }),
        'tokens-output-total': sumOf(text, 'gateway_tokens_total', { kind: 'output' }),
        'tokens-reasoning-total': sumOf(text, 'gateway_tokens_total', { kind: 'reasoning' }),
        'bytes-in-total': sumOf(text, 'gateway_request_bytes_total'),
        'bytes-out-total': sumOf(text, 'gateway_response_bytes_total'),
      };
      for (const [name, value] of Object.entries(expected)) {
        await becomes(t, () => statNumber(page, name), value, name);
      }
      await becomes(
        t,
        async () => nanos(await statNumber(page, 'cost-total')),
        nanos(sumOf(text, 'gateway_cost_usd_total')),
        'cost-total',
      );
      const answers = Object.values(load.statuses).reduce((all, count) => all + count, 0);
      t.equal(expected['requests-total'], answers, 'and those that clients have counted');
    });

    await t.test('and so are the rows by model, key, target and protocol', async (t) => {
      const text = await metricsOf(gateway);
      const choose = (name: string) =>
        page.getByRole('group', { name: 'Broken down by' }).getByRole('button', { name }).click();
      const counts = ['requests', 'errors', 'refusals'];
      const read = async (kind: string, columns: readonly string[]) =>
        byName(await tableNumbers(page, `Traffic by ${kind}`, columns));

      await becomes(t, () => read('model', counts), byName(countsBy(text, 'model')), 'by model');
      await becomes(
        t,
        async () => {
          const rows = await read('model', ['tokens-input', 'tokens-output', 'cost']);
          return Object.fromEntries(
            Object.entries(rows).map(([name, row]) => [name, { ...row, cost: nanos(row.cost ?? 0) }]),
          );
        },
        byName(spentBy(text)),
        'tokens and cost by model',
      );
      await choose('Keys');
      await becomes(t, () => read('key', counts), byName(countsByKey(text)), 'by key');
      await choose('Targets');
      await becomes(
        t,
        () => read('target', ['attempts', 'failures', 'retries']),
        byName(countsByTarget(text)),
        'by target',
      );
      await choose('Protocols');
      await becomes(t, () => read('protocol', counts), byName(countsBy(text, 'protocol')), 'by protocol');
    });
  });
});
