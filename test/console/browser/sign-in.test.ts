import type { Page } from 'playwright-core';
import { test } from 'tap';
import { adminToken, startConsoleGateway } from './gateway.js';
import { becomes, noBrowser, startBrowser, visit } from './page.js';

/** What the tab keeps, and what every tab of the browser would see. */
const stored = async (page: Page): Promise<{ tab: string[]; browser: string[] }> => ({
  tab: await page.evaluate<string[]>('Object.values(sessionStorage)'),
  browser: await page.evaluate<string[]>('[...Object.values(localStorage), document.cookie].filter(Boolean)'),
});

test('signing in to the console', { skip: noBrowser }, async (t) => {
  const [gateway, browser] = await Promise.all([startConsoleGateway(t), startBrowser(t)]);

  await t.test('a wrong token is refused in words, and the right one opens the console', async (t) => {
    await visit(t, browser, gateway, { signedOut: true, refusals: [401] }, async ({ page, signIn }) => {
      const field = page.getByLabel('Admin token');
      await becomes(
        t,
        () => field.evaluate('document.activeElement?.id'),
        'token',
        'the field has the focus',
      );
      t.equal(await field.getAttribute('type'), 'password');
      await signIn('not-the-token');
      await page.getByRole('alert').filter({ hasText: 'This is not an admin token.' }).waitFor();
      t.equal(await page.getByRole('navigation').count(), 0, 'nothing of the console is there');
      t.strictSame((await stored(page)).tab, [], 'a wrong token is not kept');
      await signIn();
      await page.getByRole('navigation').waitFor();
      t.equal(await field.count(), 0);
    });
  });

  await t.test('the token is kept for the tab alone, and gone after the sign-out', async (t) => {
    await visit(t, browser, gateway, {}, async ({ page, context }) => {
      t.ok((await stored(page)).tab.includes(adminToken));
      t.notOk((await stored(page)).browser.some((text) => text.includes(adminToken)));
      await page.reload();
      await page.getByRole('navigation').waitFor();

      const other = await context.newPage();
      await other.goto(gateway.adminUrl);
      await other.getByLabel('Admin token').waitFor();
      t.notOk(
        `${Object.values(await stored(other))}`.includes(adminToken),
        'another tab knows nothing of it',
      );
      await other.close();

      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByLabel('Admin token').waitFor();
      t.notOk(`${Object.values(await stored(page))}`.includes(adminToken));
      await page.reload();
      await page.getByLabel('Admin token').waitFor();
      t.equal(await page.getByRole('navigation').count(), 0);
    });
  });
});
