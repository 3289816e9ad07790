import type { Page } from 'playwright-core';
import { test } from 'tap';
import { startConsoleGateway } from './gateway.js';
import { noBrowser, parts, startBrowser, visit } from './page.js';
import { filled, fillParts } from './parts.js';

/** How wide what is shown is, and the window. */
const widths = (page: Page): Promise<{ content: number; window: number }> =>
  page.evaluate('({ content: document.documentElement.scrollWidth, window: innerWidth })');

test('the console in windows of all sizes', { skip: noBrowser }, async (t) => {
  const [gateway, browser] = await Promise.all([startConsoleGateway(t), startBrowser(t)]);
  await fillParts(gateway);

  for (const [width, height] of [
    [380, 800],
    [1280, 900],
    [2560, 1440],
  ] as const) {
    await t.test(`no part is wider than a window of ${width} pixels`, async (t) => {
      await visit(t, browser, gateway, { size: { width, height } }, async ({ page, open }) => {
        for (const part of parts) {
          await open(part);
          await filled(page, part);
          const { content, window } = await widths(page);
          t.ok(content <= window, `${part}: ${content} of ${window}`);
        }
      });
    });
  }
});
