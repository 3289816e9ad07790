import { test } from 'tap';
import { eventually } from '../support/eventually.js';
import { clientFormats } from '../support/media/client-formats.js';
import { ask, mateKey, strangerKey } from '../support/media/gateway.js';
import { ended, make, startVideos, wires } from '../support/media/videos.js';

const order = ['queued', 'in_progress', 'completed'];

test('a task goes forward only, whoever asks, and its progress never falls', async (t) => {
  // An upstream is asked once a second: it runs for several of them.
  const { gateway } = await startVideos(t, { pace: { queuedMs: 900, runningMs: 5000 } });
  await Promise.all(
    wires.map(async (wire) => {
      const [compat] = clientFormats;
      if (compat === undefined) throw new Error('no client format');
      const id = await make(compat, gateway, wire, 'a fox');
      const seen: { state: string; progress: number }[] = [];
      let turn = 0;
      await eventually(
        async () => {
          const clientFormat = clientFormats[turn++ % clientFormats.length] ?? compat;
          const { state } = await clientFormat.show(gateway, id);
          seen.push({ state, progress: -1 });
          const { heard } = await compat.show(gateway, id);
          seen.push({ state: String(heard.json.status), progress: Number(heard.json.progress) });
          return state;
        },
        { fits: (state) => state === 'completed', everyMs: 10 },
      );
      const ranks = seen.map(({ state }) => order.indexOf(state));
      t.strictSame(ranks, ranks.toSorted(), `${wire}: ${seen.map(({ state }) => state).join(' ')}`);
      t.ok(ranks.every((rank) => rank >= 0));
      t.ok(ranks.includes(1), 'it was seen running');
      const shown = seen.filter(({ progress }) => progress >= 0);
      const progress = shown.map((one) => one.progress);
      t.strictSame(
        progress,
        progress.toSorted((one, other) => one - other),
      );
      for (const one of shown) t.equal(one.progress === 100, one.state === 'completed');
    }),
  );
});

/** What each format says of a task that its upstream failed, apart from words that are the upstream's own. */
const failures = {
  compat: { status: 'failed', progress: Number, error: { code: /^\w+$/, message: /\w/ } },
  generic: { status: 'failed', error: { code: Number, message: /\w/ } },
  vendork: {
    code: 0,
    data: { task_status: 'failed', task_status_msg: /\w/ },
    status: 'failed',
    error: { code: Number, message: /\w/ },
  },
  vendorj: { code: /^505\d\d$/, message: /\w/, status: /^505\d\d$/, data: { status: 'done' } },
};

for (const word of ['content_policy', 'anything']) {
  test(`a task that failed with "${word}" says so in each format, and has no content`, async (t) => {
    const { gateway } = await startVideos(t);
    for (const wire of wires) {
      const prompt = `[[video:fail=${word} http=200]] a fox`;
      const [first] = clientFormats;
      if (first === undefined) throw new Error('no client format');
      const id = await make(first, gateway, wire, prompt);
      t.equal((await ended(first, gateway, id)).state, 'failed');
      for (const clientFormat of clientFormats) {
        const { state, heard } = await clientFormat.show(gateway, id);
        t.equal(state, 'failed', `${clientFormat.format} on ${wire}`);
        t.match(
          heard.json,
          failures[clientFormat.format],
          `${clientFormat.format} on ${wire}: ${heard.text}`,
        );
        t.notMatch(heard.text, /"(?:url|video_url|format)"/);
      }
      for (const method of ['GET', 'HEAD']) {
        const content = await ask(gateway, method, `/v1/videos/${id}/content`);
        t.equal(content.status, 404);
        if (method === 'GET') t.match(content.json, { error: { code: 'not_found', message: /has failed/ } });
      }
    }
  });
}

test('a vendor that tells a failure by an error status is understood', async (t) => {
  const { gateway } = await startVideos(t);
  for (const clientFormat of clientFormats) {
    const id = await make(clientFormat, gateway, 'vendorj', '[[video:fail=content_policy http=400]] a fox');
    const { state, heard } = await ended(clientFormat, gateway, id);
    t.equal(state, 'failed');
    if (clientFormat.format === 'vendorj')
      t.match(heard.json, { code: 50_511, message: 'Post Img Risk Not Pass' });
  }
});

test('an unfinished task has no content', async (t) => {
  const { gateway, simulator } = await startVideos(t, { pace: { queuedMs: 3_600_000, runningMs: 1 } });
  for (const clientFormat of clientFormats) {
    const id = await make(clientFormat, gateway, clientFormat.format, 'a fox');
    for (const query of ['', '?variant=video', '?variant=thumbnail', '?variant=spritesheet']) {
      const content = await ask(gateway, 'GET', `/v1/videos/${id}/content${query}`);
      t.equal(content.status, 404);
      t.match(content.headers.get('content-type'), /^application\/json/);
      t.match(content.json, { error: { code: 'not_found', message: /not finished/ } });
    }
    const head = await ask(gateway, 'HEAD', `/v1/videos/${id}/content`);
    t.equal(head.status, 404);
    t.equal(head.headers.get('etag'), null);
    const strange = await ask(gateway, 'GET', `/v1/videos/${id}/content?variant=poster`);
    t.equal(strange.status, 400);
    t.match(strange.json, { error: { param: 'variant', code: 'invalid_value' } });
  }
  t.equal(simulator.state().videosMade, clientFormats.length);
});

test('keys of a group that shares its tasks see them, and others never do', async (t) => {
  const groups = { default: { models: ['*'], shareVideos: true }, strangers: { models: ['*'] } };
  const { gateway } = await startVideos(t, { config: { groups } });
  for (const clientFormat of clientFormats) {
    const id = await make(clientFormat, gateway, clientFormat.format, '[[video:bytes=1000]] a fox');
    await ended(clientFormat, gateway, id);
    for (const reader of clientFormats) {
      t.equal((await reader.show(gateway, id, { key: mateKey })).state, 'completed');
      t.equal((await reader.show(gateway, id, { key: strangerKey })).state, 'missing');
    }
    const path = `/v1/videos/${id}/content`;
    t.equal((await ask(gateway, 'GET', path, { key: mateKey })).bytes.length, 1000);
    t.equal((await ask(gateway, 'GET', path, { key: strangerKey })).status, 404);
  }
});

test('the log tells of each call who asked for what, and of nothing secret', async (t) => {
  const { gateway } = await startVideos(t);
  const created = await clientFormats[1]?.create(gateway, { model: 'vendork', prompt: 'my secret fox' });
  const line = await gateway.line(({ id }) => id === created?.headers.get('x-request-id'));
  t.match(line, {
    method: 'POST',
    path: '/vendork/v1/videos/text2video',
    key: 'test',
    protocol: 'video',
    model: 'vendork',
    target: 'vendork/sim-video',
    status: 200,
    outcome: 'complete',
    retries: 0,
  });
  t.notMatch(JSON.stringify(gateway.lines), /secret|upstream-key|sk-/);
});
