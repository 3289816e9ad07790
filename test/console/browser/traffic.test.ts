import { setTimeout as pause } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { test } from 'tap';
import { parseEntry } from '../../support/gateway-processes.js';
import { sumOf } from '../../support/metrics-text.js';
import { type ConsoleGateway, startConsoleGateway } from './gateway.js';
import { prompt, startConsoleLoad } from './load.js';
import { becomes, noBrowser, startBrowser, visit } from './page.js';
import { tableNumbers } from './tables.js';

interface Row {
  readonly id: string;
  readonly status: number;
  readonly model: string;
  readonly key: string;
}

/** The page is told of the gateway every two seconds. */
const longerThanAState = 3000;
const table = 'Recent requests';

/** What the log says of requests, by their ids. */
function loggedRows({ gateway }: ConsoleGateway): readonly Row[] {
  return gateway.logs
    .map(parseEntry)
    .filter((entry) => entry?.msg === 'request')
    .map((entry) => ({
      id: `${entry?.id}`,
      status: Number(entry?.status),
      model: `${entry?.model ?? '–'}`,
      key: `${entry?.key ?? '–'}`,
    }))
    .sort(byId);
}

const byId = (a: Row, b: Row): number => (a.id < b.id ? -1 : 1);

async function shownRows(page: Page): Promise<readonly Row[]> {
  const rows = page.getByRole('table', { name: table }).locator('tr[data-row]');
  const numbers = await tableNumbers(page, table, ['status']);
  const texts = async (column: string) => rows.locator(`[data-cell="${column}"]`).allInnerTexts();
  const [models, keys] = [await texts('model'), await texts('key')];
  return Object.entries(numbers)
    .map(([id, { status = Number.NaN }], index) => ({
      id,
      status,
      model: models[index] ?? '',
      key: keys[index] ?? '',
    }))
    .sort(byId);
}

test('targets and requests', { skip: noBrowser }, async (t) => {
  const [gateway, browser] = await Promise.all([startConsoleGateway(t), startBrowser(t)]);
  await visit(t, browser, gateway, {}, async ({ page, open }) => {
    const load = startConsoleLoad(gateway);
    await load.stop();

    await t.test('the last requests are those of the log, and nothing of a body is among it', async (t) => {
      await open('requests');
      const calls = Object.values(load.statuses).reduce((sum, count) => sum + count, 0);
      await becomes(t, () => loggedRows(gateway).length, calls, 'all are in the log');
      await becomes(t, () => shownRows(page), loggedRows(gateway), 'rows');
      const times = await tableNumbers(page, table, ['at', 'duration', 'first-byte', 'own']);
      const ends = Object.values(times).map(({ at = 0 }) => at);
      t.strictSame(
        ends,
        [...ends].sort((a, b) => b - a),
        'newest first',
      );
      for (const [id, { duration = 0 }] of Object.entries(times)) t.ok(duration > 0, id);
      t.notMatch(await page.content(), prompt);
    });

    await t.test('they can be looked through, and held', async (t) => {
      const rows = page.getByRole('table', { name: table }).locator('tr[data-row]');
      const all = await rows.count();
      const search = page.getByRole('searchbox', { name: 'Filter' });
      await search.fill('talk trial');
      await becomes(t, () => rows.count(), 2, 'by a model and a key');
      await search.fill('');
      await page.getByLabel('Only errors').check();
      await becomes(t, () => rows.count(), 3, 'errors only');
      await page.getByLabel('Only errors').uncheck();
      await page.getByRole('button', { name: 'Pause' }).click();
      t.equal(await gateway.call('/v1/chat/completions', 'sk-nobody', {}), 401);
      await pause(longerThanAState);
      t.equal(await rows.count(), all, 'nothing moves while it is held');
      await page.getByRole('button', { name: 'Pause' }).click();
      await becomes(t, () => rows.count(), all + 1, 'and goes on then');
    });

    await t.test('a target that is down says so, with its last error', async (t) => {
      await open('targets');
      const row = (name: string) => page.locator(`tr[data-row="target:${name}"]`);
      await row('down/gone').waitFor();
      t.equal(
        await row('local/sim-text').locator('[data-cell="state"]').getAttribute('data-state'),
        'closed',
      );
      t.match(await row('down/gone').locator('[data-cell="last-failure"]').innerText(), /\w+/);
      t.equal(await row('local/sim-text').locator('[data-cell="last-failure"]').innerText(), '');
      const text = await (await gateway.admin('/metrics')).text();
      const family = 'gateway_upstream_attempts_total';
      for (const target of ['down/gone', 'local/sim-text', 'local/sim-embedding']) {
        const attempts = sumOf(text, family, { target });
        const failures = attempts - sumOf(text, family, { target, result: 'ok' });
        await becomes(
          t,
          async () => (await tableNumbers(page, 'Targets', ['attempts', 'failures', 'in-flight']))[target],
          { attempts, failures, 'in-flight': 0 },
          target,
        );
      }
    });
  });
});
