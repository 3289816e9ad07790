import { type Test, test } from 'tap';
import type { StoreSettings } from '../../src/config/types.js';
import { createStore } from '../../src/store/create.js';
import { type OpenCallsValue, openCallsCollection } from '../../src/usage/open-calls.js';
import { readPage } from '../../src/usage/queries.js';
import { postgresSettings } from '../suites/store.js';
import { eventually } from '../support/eventually.js';
import { killProcess } from '../support/gateway-processes.js';
import { loadKey } from '../support/load/request.js';
import { postgresFor, skipWithoutPostgres } from '../support/postgres.js';
import { openClient, startRealtimeUpstream } from '../support/realtime.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { jsonAnswer, startRawUpstream } from '../support/upstream.js';
import { chatBody, startUsageGateway, type UsageGateway, type UsageLine } from '../support/usage-gateway.js';

const idOf = (response: Response): string => response.headers.get('x-request-id') ?? '';
const patient = { everyMs: 200, withinMs: 60_000 };

/** Four tokens each. */
const word = 'sixteen letters.';
const event = `data: ${JSON.stringify({ object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content: word } }] })}\n\n`;
const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;

/** An upstream whose streams say a word a second, for ever, or as the body asks for. */
async function talkative(t: Test) {
  let mostSaid = 0;
  const upstream = await startRawUpstream(t, ({ socket, body }) => {
    const ends = body.includes('ends after 12 s') ? 12 : Number.POSITIVE_INFINITY;
    socket.on('error', () => {});
    socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n');
    let said = 0;
    const timer = setInterval(() => {
      if (said < ends) socket.write(chunk(event));
      else {
        clearInterval(timer);
        socket.write(`${chunk('data: [DONE]\n\n')}0\r\n\r\n`);
      }
      said++;
      mostSaid = Math.max(mostSaid, said);
    }, 1000);
    socket.on('close', () => clearInterval(timer));
  });
  return { upstreamUrl: upstream.url, mostSaid: () => mostSaid };
}

/** Begins a stream. It is read by nobody, and breaks with its worker. @returns its id */
async function begin(usage: UsageGateway): Promise<string> {
  const answer = await usage.post('/v1/chat/completions', chatBody('x'.repeat(400), { stream: true }));
  void answer.body
    ?.getReader()
    .read()
    .catch(() => {});
  return idOf(answer);
}

const embeddedSettings = (path: string): StoreSettings => ({ kind: 'embedded', path, taskDays: 7 });
/** As many as a call has in its first record, after 10 s, where no process waits for the processor. */
const fewestWords = 9;

/** Resolves when the store has the records of so many calls, each with so many tokens of output. */
async function untilKept(settings: StoreSettings, count: number, tokens = 4 * fewestWords): Promise<void> {
  const store = createStore(settings);
  const isKept = async (): Promise<boolean> => {
    const { records } = await store.list(openCallsCollection, 100, null);
    const calls = records.flatMap(({ value }) => readPage((JSON.parse(value) as OpenCallsValue).page));
    return calls.filter(({ outputTokens }) => outputTokens >= tokens).length === count;
  };
  try {
    await eventually(isKept, { ...patient, what: 'the records of the calls' });
  } finally {
    await store.close();
  }
}

function interrupted(lines: readonly UsageLine[]): readonly UsageLine[] {
  return lines.filter(({ outcome }) => outcome === 'interrupted');
}

async function theLine(usage: UsageGateway, id: string): Promise<UsageLine> {
  const found = await eventually(
    async () => (await usage.lines()).filter(({ requestId }) => requestId === id),
    { ...patient, fits: ({ length }) => length > 0, what: 'the line of the interrupted call' },
  );
  // Every process has looked again by then.
  await new Promise((resolve) => setTimeout(resolve, 3000));
  const again = (await usage.lines()).filter(({ requestId }) => requestId === id);
  if (again.length !== 1 || found[0] === undefined) throw new Error(`${again.length} lines of one call`);
  return found[0];
}

function isCharged(t: Test, line: UsageLine, mostWords: number): void {
  t.match(line, { outcome: 'interrupted', tokensKnown: 'partial', model: 'talk', status: 200, units: 1 });
  t.ok(line.inputTokens >= 100, `input is ${line.inputTokens}`);
  t.ok(line.outputTokens >= 4 * fewestWords, `output of ${fewestWords} words is ${line.outputTokens}`);
  t.ok(line.outputTokens <= 4 * mostWords, `output of ${mostWords} words is ${line.outputTokens}`);
  t.equal(line.costNanoUsd, line.inputTokens * 1250 + line.outputTokens * 10_000);
}

for (const kind of ['embedded', 'postgres'] as const)
  test(`a long stream whose worker is killed has one line with what was known (${kind})`, {
    skip: kind === 'postgres' && skipWithoutPostgres(),
  }, async (t) => {
    const path = temporaryFolder(t);
    const database = kind === 'postgres' ? await postgresFor(t) : null;
    const settings = database === null ? embeddedSettings(path) : postgresSettings(database.port);
    const store = database === null ? { kind, path } : { kind, url: database.url };
    const { upstreamUrl, mostSaid } = await talkative(t);
    const usage = await startUsageGateway(t, { upstreamUrl, store, workers: 1 });
    const short = await usage.post('/v1/chat/completions', chatBody('hello', { model: 'unheard-of' }));
    t.equal(short.status, 404);
    const id = await begin(usage);
    await untilKept(settings, 1);
    for (const pid of usage.gateway.workerPids()) killProcess(pid);
    isCharged(t, await theLine(usage, id), mostSaid());
    t.match((await usage.report()).total, { calls: 1, interrupted: 1, inexact: 1 });
  });

test('a kill of all processes leaves the calls to the next start', async (t) => {
  const store = { kind: 'embedded', path: temporaryFolder(t) };
  const { upstreamUrl, mostSaid } = await talkative(t);
  const first = await startUsageGateway(t, { upstreamUrl, store, workers: 2 });
  const ids = await Promise.all([begin(first), begin(first), begin(first)]);
  await untilKept(embeddedSettings(store.path), ids.length);
  await first.gateway.end();
  const second = await startUsageGateway(t, { upstreamUrl, store, workers: 2 });
  for (const id of ids) isCharged(t, await theLine(second, id), mostSaid());
  t.equal(interrupted(await second.lines()).length, 3);
});

test('a video whose creation was answered just before a kill of all processes is charged, once', async (t) => {
  const store = { kind: 'embedded', path: temporaryFolder(t) };
  const { url } = await startRawUpstream(t, ({ socket }) =>
    socket.write(jsonAnswer(200, '{"id":"theirs","status":"queued"}')),
  );
  const first = await startUsageGateway(t, { upstreamUrl: url, store, workers: 1 });
  const made = await first.post('/v1/videos', { model: 'm', prompt: 'a fox', seconds: '8' });
  t.equal(made.status, 200);
  await first.gateway.end();
  const second = await startUsageGateway(t, { upstreamUrl: url, store, workers: 1 });
  const line = await theLine(second, idOf(made));
  t.match(line, { protocol: 'video', model: 'm', units: 1, mediaSeconds: 8, costNanoUsd: 0.81e9 });
});

test('a long call that ends has its own line and no other, when its worker is killed later', async (t) => {
  const store = { kind: 'embedded', path: temporaryFolder(t) };
  const { upstreamUrl } = await talkative(t);
  const usage = await startUsageGateway(t, { upstreamUrl, store, workers: 1 });
  const answer = await usage.post('/v1/chat/completions', chatBody('ends after 12 s', { stream: true }));
  await answer.text();
  await usage.linesOf(idOf(answer));
  // Its record may still be there.
  for (const pid of usage.gateway.workerPids()) killProcess(pid);
  t.match(await theLine(usage, idOf(answer)), { outcome: 'complete' });
  t.equal(interrupted(await usage.lines()).length, 0);
});

test('a database that is down when the worker is killed has what was known before', {
  skip: skipWithoutPostgres(),
}, async (t) => {
  const database = await postgresFor(t);
  const { upstreamUrl, mostSaid } = await talkative(t);
  const store = { kind: 'postgres', url: database.url };
  const usage = await startUsageGateway(t, {
    upstreamUrl,
    store,
    workers: 1,
    config: { outage: { budgets: 'open' } },
  });
  const id = await begin(usage);
  await untilKept(postgresSettings(database.port), 1);
  await database.crash();
  const [pid = 0] = usage.gateway.workerPids();
  killProcess(pid);
  await usage.gateway.until(() => usage.gateway.workerPids().some((other) => other !== pid));
  await new Promise((resolve) => setTimeout(resolve, 3000));
  await database.restart();
  isCharged(t, await theLine(usage, id), mostSaid());
});

test('a realtime session whose worker is killed has what its responses have used', async (t) => {
  const used = {
    type: 'response.done',
    response: { usage: { input_tokens: 30, output_tokens: 20, total_tokens: 50 } },
  };
  const upstream = await startRealtimeUpstream(t, ({ socket }) => socket.send(JSON.stringify(used)));
  const live = {
    protocols: ['realtime'],
    targets: [{ upstream: 'studio', model: 'live' }],
    price: { input: 1.25, output: 10 },
  };
  const path = temporaryFolder(t);
  const usage = await startUsageGateway(t, {
    upstreamUrl: upstream.url,
    store: { kind: 'embedded', path },
    workers: 1,
    config: { models: { live } },
  });
  const headers = { authorization: `Bearer ${loadKey}` };
  const client = await openClient(t, usage.gateway.port, { query: 'model=live', headers });
  await client.until(1);
  await untilKept(embeddedSettings(path), 1, 20);
  for (const pid of usage.gateway.workerPids()) killProcess(pid);
  await client.closed;
  const [line] = await eventually(() => usage.lines(), { ...patient, fits: ({ length }) => length > 0 });
  t.match(line, {
    outcome: 'interrupted',
    tokensKnown: 'partial',
    protocol: 'realtime',
    model: 'live',
    inputTokens: 30,
    outputTokens: 20,
    costNanoUsd: 30 * 1250 + 20 * 10_000,
  });
});
