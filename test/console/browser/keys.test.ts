import type { Page } from 'playwright-core';
import { test } from 'tap';
import { type ConsoleGateway, startConsoleGateway } from './gateway.js';
import { becomes, noBrowser, startBrowser, visit } from './page.js';

const body = { model: 'talk', messages: [{ role: 'user', content: 'hi' }] };

const chat = (gateway: ConsoleGateway, key: string): Promise<number> =>
  gateway.call('/v1/chat/completions', key, body);

const rowOf = (page: Page, id: string) => page.locator(`tr[data-row="key:${id}"]`);

/** Reads the new key that a dialog shows, and closes it. */
async function takeNewKey(page: Page): Promise<string> {
  // By its element: a dialog that is closed has no role any more, and stands in the page until it is drawn anew.
  const dialog = page.locator('dialog').filter({ hasText: 'it is not shown again' });
  const key = await dialog.getByRole('textbox', { name: 'The new key' }).innerText();
  await dialog.getByRole('button', { name: 'Done' }).click();
  await dialog.waitFor({ state: 'detached' });
  return key.trim();
}

test('keys in the console', { skip: noBrowser }, async (t) => {
  const [gateway, browser] = await Promise.all([startConsoleGateway(t, { workers: 2 }), startBrowser(t)]);
  await visit(t, browser, gateway, {}, async ({ page, open }) => {
    await open('keys');
    let first = '';
    let second = '';

    await t.test('a key is made, shown once, and works', async (t) => {
      await page.getByRole('button', { name: 'Create key' }).click();
      const dialog = page.getByRole('dialog');
      t.equal(await dialog.getByLabel('Label').evaluate((field) => field.matches(':focus')), true);
      await dialog.getByLabel('Label').fill('The night shift');
      await dialog.getByLabel('Id', { exact: false }).fill('night');
      await dialog.getByRole('checkbox', { name: 'default' }).check();
      await dialog.getByLabel('Requests a minute').fill('600');
      await dialog.getByLabel('Budget in US dollars').fill('25');
      await dialog.getByRole('button', { name: 'Create', exact: true }).click();
      first = await takeNewKey(page);
      t.match(first, /^sk-.{20,}$/);
      t.notMatch(await page.content(), first, 'it is not shown again');
      t.equal(await chat(gateway, first), 200);
      const row = await rowOf(page, 'night').innerText();
      for (const text of ['The night shift', 'default', '600', '$25']) t.match(row, text);
      await becomes(
        t,
        () => rowOf(page, 'night').locator('[data-cell="requests"]').getAttribute('data-value'),
        '1',
        'its call is counted',
      );
    });

    await t.test('a mistake in the dialog is told at its field, and nothing is made', async (t) => {
      const before = await page.locator('tr[data-row]').count();
      await page.getByRole('button', { name: 'Create key' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('Calls at once').fill('many');
      await dialog.getByRole('button', { name: 'Create', exact: true }).click();
      await dialog.getByText('A whole number above 0.').waitFor();
      await dialog.getByText('At least one group.').waitFor();
      t.equal(await dialog.locator('[aria-invalid="true"]').count(), 2);
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'detached' });
      const { keys } = (await (await gateway.admin('/keys')).json()) as { keys: readonly unknown[] };
      t.equal(keys.length, before);
    });

    await t.test('it is changed', async (t) => {
      await rowOf(page, 'night').getByRole('button', { name: 'Edit' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('Label').fill('The early shift');
      await dialog.getByRole('button', { name: 'Save' }).click();
      await rowOf(page, 'night').getByText('The early shift').waitFor();
      t.equal(await chat(gateway, first), 200);
    });

    await t.test('rotated, the new key works and the old one does not', async (t) => {
      await rowOf(page, 'night').getByRole('button', { name: 'Rotate' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Rotate key' }).click();
      second = await takeNewKey(page);
      t.not(second, first);
      t.equal(await chat(gateway, second), 200);
      t.equal(await chat(gateway, first), 401);
    });

    await t.test('revoked, it is refused', async (t) => {
      await rowOf(page, 'night').getByRole('button', { name: 'Revoke' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByRole('button', { name: 'Cancel' }).click();
      await dialog.waitFor({ state: 'detached' });
      t.equal(await chat(gateway, second), 200, 'not before it was confirmed');
      await rowOf(page, 'night').getByRole('button', { name: 'Revoke' }).click();
      await dialog.getByRole('button', { name: 'Revoke key' }).click();
      await dialog.waitFor({ state: 'detached' });
      t.equal(await chat(gateway, second), 401);
      await rowOf(page, 'night').getByText('revoked').waitFor();
      t.equal(await rowOf(page, 'night').getByRole('button').count(), 0, 'and there is nothing more to do');
    });

    await t.test('keys of the config file are shown, and not for changing', async (t) => {
      const row = rowOf(page, 'demo');
      t.match(await row.innerText(), 'default');
      t.equal(await row.getByRole('button').count(), 0);
    });
  });
});
