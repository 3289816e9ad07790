import type { Locator, Page } from 'playwright-core';
import { test } from 'tap';
import { eventually } from '../../support/eventually.js';
import { consoleKeys, startConsoleGateway } from './gateway.js';
import { becomes, consoleWait, noBrowser, startBrowser, visit } from './page.js';

/** Sends a prompt that no other has been like, and gives what is shown of its answer. */
async function send(page: Page, prompt: string): Promise<Locator> {
  await page.getByLabel('Prompt').fill(prompt);
  await page.getByRole('button', { name: 'Send' }).click();
  return page.locator('li.exchange', { hasText: prompt }).locator('.answer');
}

const ended = (answer: Locator): Promise<boolean> =>
  eventually(async () => (await answer.getAttribute('aria-busy')) === 'false', {
    what: 'the answer has ended',
    ...consoleWait,
  });

const choose = (page: Page, group: string, name: string) =>
  page.getByRole('group', { name: group }).getByRole('button', { name, exact: true }).click();

const tab = (page: Page, name: string) => page.getByRole('tab', { name }).click();

test('the playground', { skip: noBrowser }, async (t) => {
  const [gateway, browser] = await Promise.all([startConsoleGateway(t), startBrowser(t)]);
  await visit(t, browser, gateway, {}, async ({ page, open }) => {
    await open('playground');
    await page.getByLabel('API key').fill(consoleKeys.demo);

    await t.test('a chat streams, with its events, timings and code', async (t) => {
      await page.getByRole('combobox', { name: 'Model', exact: true }).selectOption('talk');
      const answer = await send(page, '[[fault:rate=20]] [[fault:long=60]] A long story');
      const text = answer.locator('.said').last();
      await eventually(async () => (await text.innerText()).length > 0, {
        what: 'the text begins',
        ...consoleWait,
      });
      const lengths = new Set<number>();
      await eventually(async () => lengths.add((await text.innerText()).length).size >= 4, {
        what: 'the text grows',
        ...consoleWait,
      });
      t.equal(await answer.getAttribute('aria-busy'), 'true', 'while it still comes');
      await ended(answer);
      t.ok((await text.innerText()).length >= Math.max(...lengths));
      t.match(await answer.innerText(), /\b200\b/);

      await tab(page, 'Events');
      const events = page.getByRole('list', { name: 'Events' }).getByRole('listitem');
      t.ok((await events.count()) > 10);
      t.match(await events.first().innerText(), 'chat.completion.chunk');
      t.match(await events.last().innerText(), '[DONE]');
      await tab(page, 'Timing');
      const timing = await page.getByRole('img', { name: /^Server-Timing: / }).getAttribute('aria-label');
      for (const step of ['auth', 'parse', 'upstream']) t.match(timing, step);
      await tab(page, 'Code');
      const code = page.locator('pre[aria-label="Code"]');
      t.match(await code.innerText(), `curl`);
      t.match(await code.innerText(), `${gateway.gateway.baseUrl}/v1/chat/completions`);
      t.notMatch(await code.innerText(), consoleKeys.demo);
      for (const language of ['Python', 'TypeScript']) {
        await choose(page, 'Language', language);
        t.match(await code.innerText(), 'talk', language);
      }
      await tab(page, 'Answer');
    });

    await t.test('it is stopped', async (t) => {
      const answer = await send(page, '[[fault:rate=5]] [[fault:long=500]] A longer story');
      const text = answer.locator('.said').last();
      await eventually(async () => (await text.innerText()).length > 0, {
        what: 'the text begins',
        ...consoleWait,
      });
      await page.getByRole('button', { name: 'Stop' }).click();
      await ended(answer);
      t.match(await answer.innerText(), 'stopped');
      const entry = await gateway.gateway.untilLogged(
        ({ msg, outcome }) => msg === 'request' && outcome === 'client_gone',
      );
      t.equal(entry.model, 'talk', 'and the gateway is told');
    });

    await t.test('every text protocol is spoken', async (t) => {
      for (const protocol of ['responses', 'messages', 'generateContent']) {
        await page.getByRole('combobox', { name: 'Protocol' }).selectOption(protocol);
        const answer = await send(page, `Hello in ${protocol}`);
        await ended(answer);
        t.match(await answer.innerText(), /\b200\b/, protocol);
        t.ok((await answer.locator('.said').last().innerText()).length > 0, protocol);
      }
    });

    await t.test('an image is made and shown, by each form of asking for it', async (t) => {
      await choose(page, 'Make', 'Image');
      for (const protocol of ['images', 'imagesInput', 'generateContent']) {
        await page.getByRole('combobox', { name: 'Protocol' }).selectOption(protocol);
        const isRatio = protocol === 'generateContent';
        t.equal(await page.getByRole('combobox', { name: 'Ratio' }).isVisible(), isRatio);
        t.equal(await page.getByRole('combobox', { name: 'Size' }).isVisible(), !isRatio);
        if (isRatio) await page.getByRole('combobox', { name: 'Ratio' }).selectOption('16:9');
        const prompt = `A lighthouse by ${protocol}`;
        const answer = await send(page, prompt);
        const image = page.getByRole('img', { name: prompt });
        await becomes(
          t,
          () => image.evaluate((each: { naturalWidth: number }) => each.naturalWidth),
          isRatio ? 1376 : 1024,
          `drawn by ${protocol}`,
        );
        await ended(answer);
        if (isRatio) t.match(await answer.locator('.said').last().innerText(), prompt, 'with its text');
      }
    });

    await t.test('a speech is made and can be played', async (t) => {
      await choose(page, 'Make', 'Speech');
      await send(page, 'one two three four');
      const audio = page.getByLabel('Speech', { exact: true }).locator('visible=true');
      await eventually(
        () =>
          audio.evaluate(
            (each: { readyState: number; duration: number }) => each.readyState >= 1 && each.duration > 0,
          ),
        { what: 'it can be played', ...consoleWait },
      );
      t.ok(await audio.evaluate((each: { duration: number }) => each.duration > 0.5));
    });

    await t.test('a video is made, becomes ready, and plays', async (t) => {
      await choose(page, 'Make', 'Video');
      const answer = await send(page, 'A lighthouse at night');
      const states = new Set<string>();
      const video = page.locator('video');
      await eventually(
        async () => {
          states.add((await answer.innerText()).match(/Queued|In progress|Finished/)?.[0] ?? '');
          return (await video.count()) === 1;
        },
        { what: 'it is ready', ...consoleWait },
      );
      t.ok(states.has('Queued') || states.has('In progress'), 'it could be watched while it was made');
      interface Player {
        readonly videoWidth: number;
        readonly currentTime: number;
        play(): Promise<void>;
      }
      await eventually(() => video.evaluate((each: Player) => each.videoWidth > 0), {
        what: 'it is loaded',
        ...consoleWait,
      });
      await video.evaluate((each: Player) => each.play());
      await eventually(() => video.evaluate((each: Player) => each.currentTime > 0.2), {
        what: 'it plays',
        ...consoleWait,
      });
    });

    await t.test('what the gateway refuses is told in its words', async (t) => {
      await choose(page, 'Make', 'Chat');
      await page.getByLabel('API key').fill('sk-nobody');
      const answer = await send(page, 'Hello');
      await ended(answer);
      t.match(await answer.innerText(), /401.*API key/i);
    });
  });
});
