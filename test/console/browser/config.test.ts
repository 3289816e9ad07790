import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { test } from 'tap';
import { writeConfig } from '../../support/gateway-processes.js';
import { adminToken, secrets, startConsoleGateway } from './gateway.js';
import { becomes, noBrowser, startBrowser, visit } from './page.js';

/** All lines of the config that the page shows, its sections opened. */
async function shownConfig(page: Page): Promise<string> {
  const sections = page.locator('details.config-section');
  await sections.first().waitFor();
  for (const section of await sections.all()) {
    if ((await section.getAttribute('open')) === null) await section.locator('summary').click();
  }
  return (await sections.locator('pre').allInnerTexts()).join('\n');
}

test('the config in the console', { skip: noBrowser }, async (t) => {
  const [gateway, browser] = await Promise.all([startConsoleGateway(t), startBrowser(t)]);
  const path = gateway.gateway.configPath as string;
  const config = JSON.parse(readFileSync(path, 'utf8')) as { models: object };
  await visit(t, browser, gateway, { refusals: [422] }, async ({ page, open }) => {
    await open('config');
    const generation = () => page.locator('section [data-value]', { hasText: 'generation' }).innerText();
    const reload = async () => {
      await page.getByRole('button', { name: 'Reload', exact: true }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Reload now' }).click();
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    };

    await t.test('it is shown without its secrets', async (t) => {
      const text = await shownConfig(page);
      t.match(text, 'down');
      t.match(text, 'sim-text');
      const all = `${text}${await page.content()}`;
      const { upstreamKey, header, hashes } = secrets;
      for (const secret of [adminToken, upstreamKey, header, ...hashes]) {
        t.notOk(all.includes(secret), secret);
      }
      t.match(text, '•••');
      await becomes(t, () => page.locator('.config-path').innerText(), path, 'where its file is');
      await becomes(t, generation, 'generation 1', 'which one it is');
    });

    await t.test(
      'a mistake in the file is shown by the check and by a reload, and changes nothing',
      async (t) => {
        writeConfig(path, { ...config, keyz: [] });
        await page.getByRole('button', { name: 'Check file' }).click();
        const problems = page.getByRole('alert').filter({ hasText: 'The file cannot be used' });
        await problems.waitFor();
        t.match(await problems.innerText(), 'keyz');
        await reload();
        await page.getByRole('alert').filter({ hasText: 'the config stays what it was' }).waitFor();
        t.match(await problems.innerText(), 'keyz');
        t.equal(await generation(), 'generation 1');
        t.match(await (await gateway.admin('/status')).json(), { config: { generation: 1 } });

        writeConfig(path, '{ not json');
        await page.getByRole('button', { name: 'Check file' }).click();
        await problems.filter({ hasNotText: 'keyz' }).waitFor();
      },
    );

    await t.test('repaired, the file is in force after a reload', async (t) => {
      writeConfig(path, {
        ...config,
        models: {
          ...config.models,
          fresh: { protocols: ['chat'], targets: [{ upstream: 'local', model: 'sim-text' }] },
        },
      });
      await page.getByRole('button', { name: 'Check file' }).click();
      await page.getByRole('status').filter({ hasText: 'The file can be used' }).waitFor();
      t.equal(await generation(), 'generation 1', 'a check puts nothing in force');
      await reload();
      await page.getByRole('status').filter({ hasText: 'the file is in force' }).waitFor();
      await becomes(t, generation, 'generation 2', 'the next one');
      t.match(await shownConfig(page), '"fresh"');
      const body = { model: 'fresh', messages: [{ role: 'user', content: 'hi' }] };
      t.equal(await gateway.call('/v1/chat/completions', 'sk-demo', body), 200);
    });
  });
});
