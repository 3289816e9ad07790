import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { test } from 'tap';
import { eventually } from '../../support/eventually.js';
import { sumOf } from '../../support/metrics-text.js';
import type { ReportRow, UsageReportAnswer } from '../../support/usage-gateway.js';
import { type ConsoleGateway, startConsoleGateway } from './gateway.js';
import { startConsoleLoad } from './load.js';
import { becomes, consoleWait, noBrowser, startBrowser, visit } from './page.js';

type Sums = Readonly<Record<string, number>>;

const today = () => new Date().toISOString().slice(0, 10);

async function report(gateway: ConsoleGateway, by: string): Promise<UsageReportAnswer> {
  return (await (
    await gateway.admin(`/usage?by=${by}&from=${today()}&to=${today()}`)
  ).json()) as UsageReportAnswer;
}

/** The numbers of a row of the ledger by the names that the page has for them. */
function sumsOf(row: ReportRow): Sums {
  const { calls, refused, upstreamErrors, inputTokens, outputTokens, cachedTokens, reasoningTokens } = row;
  const { mediaSeconds, characters, costUsd } = row;
  return {
    calls,
    errors: upstreamErrors,
    refused,
    inputTokens,
    outputTokens,
    cachedTokens,
    reasoningTokens,
    mediaSeconds,
    characters,
    costUsd,
  };
}

/** Runs in the browser. */
function readCells(
  cells: readonly { readonly dataset: Readonly<Record<string, string | undefined>> }[],
): Record<string, number> {
  return Object.fromEntries(cells.map(({ dataset }) => [dataset.cell, Number(dataset.value)]));
}

const shownSums = (page: Page, row: string): Promise<Sums> =>
  page.locator(`section.usage tr[data-row="${row}"] [data-cell][data-value]`).evaluateAll(readCells);

test('usage in the console', { skip: noBrowser }, async (t) => {
  const [gateway, browser] = await Promise.all([startConsoleGateway(t), startBrowser(t)]);
  const load = startConsoleLoad(gateway);
  await load.stop();
  const text = await (await gateway.admin('/metrics')).text();
  const [input, output] = ['input', 'output'].map((kind) => sumOf(text, 'gateway_tokens_total', { kind }));
  await eventually(
    async () => {
      const { total } = await report(gateway, 'model');
      return total.inputTokens === input && total.outputTokens === output;
    },
    { what: 'all calls are in the ledger', ...consoleWait },
  );

  await visit(t, browser, gateway, {}, async ({ page, open }) => {
    await open('usage');

    await t.test(
      'rows by day and model, and the total, are those of the ledger and of /metrics',
      async (t) => {
        const { rows, total } = await report(gateway, 'day,model');
        t.ok(rows.length >= 3);
        for (const row of rows) {
          const name = `day:${row.day} model:${row.model ?? ''}`;
          await becomes(t, () => shownSums(page, name), sumsOf(row), name);
        }
        await becomes(t, () => shownSums(page, 'total'), sumsOf(total), 'total');
        const shown = await shownSums(page, 'total');
        t.equal(shown.inputTokens, input);
        t.equal(shown.outputTokens, output);
        t.equal(shown.costUsd?.toFixed(9), sumOf(text, 'gateway_cost_usd_total').toFixed(9));
      },
    );

    await t.test('the CSV of what is shown is that of the ledger', async (t) => {
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: 'Export CSV' }).click(),
      ]);
      t.match(download.suggestedFilename(), /^usage-.*\.csv$/);
      const saved = await readFile(await download.path(), 'utf8');
      const days = download.suggestedFilename().match(/\d{4}-\d\d-\d\d/g) ?? [];
      const query = `by=day,model&from=${days[0]}&to=${days.at(-1)}&format=csv`;
      t.equal(saved, await (await gateway.admin(`/usage?${query}`)).text());
      t.match(saved, `${today()},talk,`);
    });

    await t.test('rows by key, and those of one model', async (t) => {
      const by = page.getByRole('group', { name: 'Rows by' });
      await by.getByLabel('Day').uncheck();
      await by.getByLabel('Model').uncheck();
      await by.getByLabel('Key').check();
      for (const row of (await report(gateway, 'key')).rows) {
        await becomes(t, () => shownSums(page, `key:${row.key ?? ''}`), sumsOf(row), `key ${row.key}`);
      }
      await page.getByLabel('For the model').fill('vectors');
      await page.keyboard.press('Enter');
      const { total } = (await (
        await gateway.admin(`/usage?by=key&from=${today()}&to=${today()}&model=vectors`)
      ).json()) as UsageReportAnswer;
      await becomes(t, () => shownSums(page, 'total'), sumsOf(total), 'of one model');
    });
  });
});
