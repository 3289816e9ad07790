import { type Test, test } from 'tap';
import { eventually } from '../support/eventually.js';
import { loadKeyHash } from '../support/load/request.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { jsonAnswer, startRawUpstream } from '../support/upstream.js';
import { startUsageGateway } from '../support/usage-gateway.js';

const task = (status: string, more: object = {}) =>
  jsonAnswer(200, JSON.stringify({ id: 'theirs', object: 'video', status, progress: 0, ...more }));
const film = { model: 'm', prompt: 'a fox', seconds: '4' };
/** Of four seconds, in nano-dollars. */
const cost = 410_000_000;

/** A gateway whose key may spend little more than one film. */
async function start(t: Test) {
  let polled = task('queued');
  const upstream = await startRawUpstream(t, ({ head, socket }) => {
    socket.write(head.startsWith('GET ') ? polled : task('queued'));
  });
  const usage = await startUsageGateway(t, {
    upstreamUrl: upstream.url,
    store: { kind: 'embedded', path: temporaryFolder(t) },
    config: {
      keys: [{ id: 'load', hash: loadKeyHash, groups: ['load'], budget: { usd: 0.5, per: 'month' } }],
      groups: { load: { models: ['*'] } },
    },
  });
  const end = (status: string, more?: object): void => {
    polled = task(status, more);
  };
  return { usage, end };
}

test('a task that has failed is given back to its budget, and the ledger has a line that says so', async (t) => {
  const { usage, end } = await start(t);
  const made = await usage.post('/v1/videos', film);
  t.equal(made.status, 200);
  const { id } = (await made.json()) as { id: string };
  t.equal((await usage.post('/v1/videos', film)).status, 429, 'the budget has too little left');
  end('failed', { error: { code: 'c', message: 'no' } });
  const [line] = await usage.linesOf(id);
  t.match(line, {
    outcome: 'correction',
    costNanoUsd: -cost,
    mediaSeconds: -4,
    protocol: 'video',
    keyId: 'load',
    model: 'm',
  });
  // The lines of the calls themselves may be written a moment later than that of the task's end.
  await eventually(async () => (await usage.report('?by=')).total.calls === 2);
  const { total } = await usage.report('?by=');
  t.match(total, { costNanoUsd: 0, mediaSeconds: 0, calls: 2 });
  await eventually(async () => (await usage.post('/v1/videos', film)).status === 200);
});

test('a film that lasts longer than it was to is paid for, out of its budget as well', async (t) => {
  const { usage, end } = await start(t);
  const made = await usage.post('/v1/videos', { ...film, seconds: '1' });
  const { id } = (await made.json()) as { id: string };
  end('completed', { seconds: '4' });
  const [line] = await usage.linesOf(id);
  t.match(line, { outcome: 'correction', costNanoUsd: 300_000_000, mediaSeconds: 3 });
  await eventually(async () => (await usage.post('/v1/videos', { ...film, seconds: '3' })).status === 429);
  // The line of the call that made it may be written a moment later than that of its end.
  await eventually(async () => (await usage.report('?by=')).total.calls === 2);
  t.equal((await usage.report('?by=')).total.costNanoUsd, cost);
});
