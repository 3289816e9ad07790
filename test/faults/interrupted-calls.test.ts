import { type Test, test } from 'tap';
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
async function talkative(t: Test): Promise<string> {
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
    }, 1000);
    socket.on('close', () => clearInterval(timer));
  });
  return upstream.url;
}

/** Begins a stream, and reads it until so many words have come. */
async function hear(usage: UsageGateway, words: number, prompt = 'x'.repeat(400)): Promise<string> {
  const answer = await usage.post('/v1/chat/completions', chatBody(prompt, { stream: true }));
  const reader = answer.body?.getReader();
  let text = '';
  while (text.split(word).length <= words) {
    const part = await reader?.read();
    if (part === undefined || part.done) break;
    text += Buffer.from(part.value).toString();
  }
  // What follows is read by nobody: it breaks with its worker.
  void reader?.read().catch(() => {});
  return idOf(answer);
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

function isCharged(t: Test, line: UsageLine, words: number): void {
  t.match(line, { outcome: 'interrupted', tokensKnown: 'partial', model: 'talk', status: 200, units: 1 });
  t.ok(line.inputTokens >= 100, `input is ${line.inputTokens}`);
  t.ok(line.outputTokens >= 4 * (words - 3), `output of ${words} words is ${line.outputTokens}`);
  t.ok(line.outputTokens <= 4 * (words + 3), `output of ${words} words is ${line.outputTokens}`);
  t.equal(line.costNanoUsd, line.inputTokens * 1250 + line.outputTokens * 10_000);
}

for (const kind of ['embedded', 'postgres'] as const)
  test(`a stream of 12 s whose worker is killed has one line with what was known (${kind})`, {
    skip: kind === 'postgres' && skipWithoutPostgres(),
  }, async (t) => {
    const store =
      kind === 'embedded' ? { kind, path: temporaryFolder(t) } : { kind, url: (await postgresFor(t)).url };
    const upstreamUrl = await talkative(t);
    const usage = await startUsageGateway(t, { upstreamUrl, store, workers: 1 });
    const short = await usage.post('/v1/chat/completions', chatBody('hello', { model: 'unheard-of' }));
    t.equal(short.status, 404);
    const id = await hear(usage, 12);
    for (const pid of usage.gateway.workerPids()) killProcess(pid);
    isCharged(t, await theLine(usage, id), 11);
    t.match((await usage.report()).total, { calls: 1, interrupted: 1, inexact: 1 });
  });

test('a kill of all processes leaves the calls to the next start', async (t) => {
  const store = { kind: 'embedded', path: temporaryFolder(t) };
  const upstreamUrl = await talkative(t);
  const first = await startUsageGateway(t, { upstreamUrl, store, workers: 2 });
  const ids = await Promise.all([hear(first, 12), hear(first, 12), hear(first, 12)]);
  await first.gateway.end();
  const second = await startUsageGateway(t, { upstreamUrl, store, workers: 2 });
  for (const id of ids) isCharged(t, await theLine(second, id), 11);
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
  const upstreamUrl = await talkative(t);
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
  const upstreamUrl = await talkative(t);
  const store = { kind: 'postgres', url: database.url };
  const usage = await startUsageGateway(t, {
    upstreamUrl,
    store,
    workers: 1,
    config: { outage: { budgets: 'open' } },
  });
  const id = await hear(usage, 12);
  await database.crash();
  const [pid = 0] = usage.gateway.workerPids();
  killProcess(pid);
  await usage.gateway.until(() => usage.gateway.workerPids().some((other) => other !== pid));
  await new Promise((resolve) => setTimeout(resolve, 3000));
  await database.restart();
  isCharged(t, await theLine(usage, id), 11);
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
  const usage = await startUsageGateway(t, {
    upstreamUrl: upstream.url,
    store: { kind: 'embedded', path: temporaryFolder(t) },
    workers: 1,
    config: { models: { live } },
  });
  const headers = { authorization: `Bearer ${loadKey}` };
  const client = await openClient(t, usage.gateway.port, { query: 'model=live', headers });
  await client.until(1);
  await new Promise((resolve) => setTimeout(resolve, 12_000));
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
