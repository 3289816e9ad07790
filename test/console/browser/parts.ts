import type { Page } from 'playwright-core';
import type { ConsoleGateway } from './gateway.js';
import { startConsoleLoad } from './load.js';
import type { Part } from './page.js';

/** What is in sight of a part once it is filled. */
const signs: Readonly<Record<Part, string>> = {
  overview: 'figure canvas',
  targets: 'tr[data-row^="target:"]',
  requests: 'tr[data-row^="request:"]',
  keys: 'tr[data-row^="key:"]',
  usage: 'tr[data-row="total"]',
  tasks: 'tr[data-row^="task:"]',
  config: 'details.config-section',
  playground: '.composer textarea',
};

/** Waits until a part shows what it is there for. */
export async function filled(page: Page, part: Part): Promise<void> {
  await page.locator(`main ${signs[part]}`).first().waitFor();
}

/** Makes something for every part to show: calls of all outcomes, and a video task. */
export async function fillParts(gateway: ConsoleGateway): Promise<void> {
  const load = startConsoleLoad(gateway);
  await load.stop();
  await gateway.call('/v1/videos', 'sk-demo', { model: 'films', prompt: 'A lighthouse' });
}
