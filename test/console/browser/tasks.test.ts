import { test } from 'tap';
import { postJson } from '../../support/post-json.js';
import { type ConsoleGateway, consoleKeys, startConsoleGateway } from './gateway.js';
import { becomes, noBrowser, startBrowser, visit } from './page.js';

async function makeVideo({ gateway }: ConsoleGateway, prompt: string): Promise<string> {
  const answer = await postJson(
    `${gateway.baseUrl}/v1/videos`,
    { model: 'films', prompt },
    { authorization: `Bearer ${consoleKeys.demo}` },
  );
  const { id } = (await answer.json()) as { id: string };
  return id;
}

test('video tasks in the console', { skip: noBrowser }, async (t) => {
  const [gateway, browser] = await Promise.all([startConsoleGateway(t), startBrowser(t)]);
  await visit(t, browser, gateway, {}, async ({ page, open }) => {
    await open('tasks');
    await page.getByText('No video task yet.').waitFor();
    await open('overview');
    const id = await makeVideo(gateway, 'A lighthouse');
    await open('tasks');
    const row = page.locator(`tr[data-row="task:${id}"]`);
    await row.waitFor();
    const text = await row.innerText();
    for (const part of [id, 'films', 'demo']) t.match(text, part);
    t.notMatch(text, 'A lighthouse', 'nothing of a body');
    // The gateway learns how a task stands when its owner asks.
    const ask = () =>
      fetch(`${gateway.gateway.baseUrl}/v1/videos/${id}`, {
        headers: { authorization: `Bearer ${consoleKeys.demo}` },
      }).then((answer) => answer.text());
    await becomes(
      t,
      async () => {
        await ask();
        return row.locator('.badge').getAttribute('data-value');
      },
      'completed',
      'its state moves on by itself',
    );

    const states = page.getByRole('group', { name: 'State' });
    await states.getByRole('button', { name: 'Failed' }).click();
    await row.waitFor({ state: 'detached' });
    await states.getByRole('button', { name: 'Completed' }).click();
    await row.waitFor();
  });
});
