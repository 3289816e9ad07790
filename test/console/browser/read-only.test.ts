import { test } from 'tap';
import { adminToken, startConsoleGateway } from './gateway.js';
import { noBrowser, startBrowser, visit } from './page.js';

const readToken = 'the-token-of-those-who-look';

test('the console of one who may only look', { skip: noBrowser }, async (t) => {
  const [gateway, browser] = await Promise.all([
    startConsoleGateway(t, { config: { admin: { port: 0, token: adminToken, readToken } } }),
    startBrowser(t),
  ]);
  const made = await gateway.admin('/keys', {
    method: 'POST',
    body: JSON.stringify({ id: 'made', groups: ['default'] }),
  });
  t.equal(made.status, 201);
  const buttons = [
    ['keys', 'Create key', 'hidden'],
    ['keys', 'Edit', 'hidden'],
    ['keys', 'Revoke', 'hidden'],
    ['config', 'Reload', 'hidden'],
    ['playground', 'Make a key for an hour', 'hidden'],
    ['playground', 'Send', 'disabled'],
  ] as const;
  const shownLast = {
    keys: '[data-row="key:made"]',
    config: 'details.config-section',
    playground: '.settings option',
  } as const;
  for (const token of [readToken, adminToken]) {
    await visit(t, browser, gateway, { signedOut: true }, async ({ page, open, signIn }) => {
      await signIn(token);
      await page.getByRole('navigation').waitFor();
      t.equal(await page.getByText('Read only', { exact: true }).isVisible(), token === readToken);
      for (const [part, name, how] of buttons) {
        await open(part);
        // What the view shows once it has been told everything.
        await page.locator(shownLast[part]).first().waitFor({ state: 'attached' });
        const button = page.getByRole('button', { name, exact: true }).first();
        if (token === adminToken) {
          await button.waitFor();
          t.ok(await button.isEnabled(), `${name} is offered to one who may`);
        } else if (how === 'hidden') t.notOk(await button.isVisible(), `${name} is not shown`);
        else t.ok(await button.isDisabled(), `${name} cannot be pressed`);
      }
      if (token === readToken) {
        await open('config');
        await page.getByRole('button', { name: 'Check file' }).click();
        await page.getByText('The file can be used. Nothing was put in force.').waitFor();
      }
    });
  }
});
