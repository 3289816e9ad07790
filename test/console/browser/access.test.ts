import type { Page } from 'playwright-core';
import { test } from 'tap';
import { eventually } from '../../support/eventually.js';
import { startConsoleGateway } from './gateway.js';
import { consoleWait, noBrowser, parts, startBrowser, visit } from './page.js';
import { filled, fillParts } from './parts.js';
import { faintTexts } from './text-contrast.js';

/** Roles that are nothing to a reader without a name. */
const named = [
  'button',
  'textbox',
  'searchbox',
  'combobox',
  'checkbox',
  'radio',
  'link',
  'table',
  'dialog',
  'switch',
];
const nameless = new RegExp(`^\\s*- (?:${named.join('|')})(?: \\[[^\\]]*\\])*:?(?: .*)?$`);

/** Lines of the accessibility tree with something to press or to fill in that has no name. */
async function withoutName(page: Page): Promise<readonly string[]> {
  const tree = await page.locator('body').ariaSnapshot();
  return tree.split('\n').filter((line) => nameless.test(line) && !/^\s*- \w+ "/.test(line));
}

/** The focused element: what it is, and whether its focus can be seen. */
interface Focus {
  readonly name: string;
  readonly isVisible: boolean;
}

const focus = (page: Page): Promise<Focus> =>
  page.evaluate(`(() => {
    const element = document.activeElement;
    const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(element);
    const hasOutline = outlineStyle !== 'none' && parseFloat(outlineWidth) > 0;
    return {
      name: element === document.body ? '' : (element.getAttribute('aria-label') ?? element.textContent ?? '').trim(),
      isVisible: element.matches(':focus-visible') && (hasOutline || boxShadow !== 'none'),
    };
  })()`);

test('the console for everybody', { skip: noBrowser }, async (t) => {
  const [gateway, browser] = await Promise.all([startConsoleGateway(t), startBrowser(t)]);
  await fillParts(gateway);

  await t.test('everything to press or to fill in has a name', async (t) => {
    await visit(t, browser, gateway, {}, async ({ page, open }) => {
      for (const part of parts) {
        await open(part);
        await filled(page, part);
        t.strictSame(await withoutName(page), [], part);
        t.equal(await page.getByRole('heading', { level: 2 }).count(), 1, `${part} has one heading`);
      }
      await open('keys');
      await page.getByRole('button', { name: 'Create key' }).click();
      await page.getByRole('dialog').waitFor();
      t.strictSame(await withoutName(page), [], 'dialog of a key');
    });
    await visit(t, browser, gateway, { signedOut: true }, async ({ page }) => {
      await page.getByLabel('Admin token').waitFor();
      t.strictSame(await withoutName(page), [], 'sign-in');
    });
  });

  for (const theme of ['light', 'dark'] as const) {
    await t.test(`every text can be read in the ${theme} theme`, async (t) => {
      await visit(t, browser, gateway, { theme }, async ({ page, open }) => {
        const isDark = await page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches");
        t.equal(isDark, theme === 'dark');
        for (const part of parts) {
          await open(part);
          await filled(page, part);
          t.strictSame(await faintTexts(page), [], part);
        }
      });
    });
  }

  await t.test('all parts are reached with the keyboard alone, and the focus is seen', async (t) => {
    await visit(t, browser, gateway, { signedOut: true }, async ({ page }) => {
      await page.getByLabel('Admin token').waitFor();
      await page.keyboard.type('a-token-of-operators');
      await page.keyboard.press('Enter');
      await page.getByRole('navigation').waitFor();
      const titles = await page.getByRole('navigation').getByRole('link').allInnerTexts();
      t.equal(titles.length, parts.length);
      for (const title of titles) {
        let now: Focus = { name: '', isVisible: false };
        for (let presses = 0; presses < 200 && now.name !== title; presses++) {
          await page.keyboard.press('Tab');
          now = await focus(page);
          if (now.name !== '') t.ok(now.isVisible, `the focus on ${now.name.slice(0, 40)}`);
        }
        await page.keyboard.press('Enter');
        await eventually(async () => (await page.title()).startsWith(title), { what: title, ...consoleWait });
        await page.getByRole('heading', { level: 2, name: title }).waitFor();
      }
    });
  });
});
