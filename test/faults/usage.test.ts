import { type Test, test } from 'tap';
import { eventually } from '../support/eventually.js';
import { postgresFor, skipWithoutPostgres } from '../support/postgres.js';
import { simulate } from '../support/simulator.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { startRawUpstream } from '../support/upstream.js';
import { chatBody, startUsageGateway, type UsageGateway, type UsageLine } from '../support/usage-gateway.js';

const skip = skipWithoutPostgres();
const idOf = (response: Response): string => response.headers.get('x-request-id') ?? '';

async function simulated(t: Test): Promise<string> {
  const simulator = await simulate(t);
  return simulator.url;
}

/** A place for the data of several gateways, one after the other. */
function keptStore(t: Test): { readonly kind: string; readonly path: string } {
  const folder = temporaryFolder(t);
  return { kind: 'embedded', path: folder };
}

async function start(
  t: Test,
  upstreamUrl: string,
  store: Readonly<Record<string, unknown>> = keptStore(t),
  workers = 1,
): Promise<UsageGateway> {
  return startUsageGateway(t, { upstreamUrl, store, workers });
}

const event = (content: string): string =>
  `data: ${JSON.stringify({ object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content } }] })}\n\n`;

test('a client that leaves early is charged what was streamed, and so is a stream that is cut', async (t) => {
  const streamed = event('Hello') + event(' there') + event(', all');
  const upstream = await startRawUpstream(t, ({ socket }, index) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n');
    socket.write(`${streamed.length.toString(16)}\r\n${streamed}\r\n`);
    if (index === 1) setTimeout(() => socket.destroy(), 100);
  });
  const usage = await start(t, upstream.url);
  const body = chatBody('x'.repeat(400), { stream: true });
  const bytes = JSON.stringify(body).length;

  const leaving = new AbortController();
  const left = await usage.post('/v1/chat/completions', body, leaving.signal);
  let seen = '';
  for await (const chunk of left.body as unknown as AsyncIterable<Uint8Array>) {
    seen += Buffer.from(chunk).toString();
    if (seen.includes(', all')) break;
  }
  leaving.abort();
  const cut = await usage.post('/v1/chat/completions', body);
  t.match(await cut.text(), /error/);

  const [leftLine, cutLine] = await usage.linesOf(idOf(left), idOf(cut));
  // "Hello there, all" is sixteen characters.
  const [input, output] = [Math.ceil(bytes / 4), 4];
  const partial = {
    tokensKnown: 'partial',
    inputTokens: input,
    outputTokens: output,
    costNanoUsd: input * 1250 + output * 10_000,
  };
  t.match(leftLine, { ...partial, outcome: 'client_gone' });
  t.match(cutLine, { ...partial, outcome: 'upstream_error' });
  const { total } = await usage.report();
  t.match(total, { calls: 2, inexact: 2, clientGone: 1, upstreamErrors: 1, outputTokens: 2 * output });
});

test('a client that leaves a translated stream, or before any answer, is charged as well', async (t) => {
  const streamed = event('Hello') + event(' there') + event(', all');
  const upstream = await startRawUpstream(t, ({ socket }, index) => {
    if (index === 1) return;
    socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n');
    socket.write(`${streamed.length.toString(16)}\r\n${streamed}\r\n`);
  });
  const usage = await start(t, upstream.url);
  const body = { ...chatBody('x'.repeat(400), { stream: true }), max_tokens: 50 };
  const leaving = new AbortController();
  const left = await usage.post('/v1/messages', body, leaving.signal);
  let seen = '';
  for await (const chunk of left.body as unknown as AsyncIterable<Uint8Array>) {
    seen += Buffer.from(chunk).toString();
    if (seen.includes(', all')) break;
  }
  leaving.abort();
  const [leftLine] = await usage.linesOf(idOf(left));
  t.match(leftLine, { tokensKnown: 'partial', outputTokens: 4, outcome: 'client_gone' });
  t.ok((leftLine?.inputTokens ?? 0) >= 100);

  const waiting = new AbortController();
  const asked = chatBody('x'.repeat(400));
  const answer = usage.post('/v1/chat/completions', asked, waiting.signal);
  await upstream.request(1);
  waiting.abort();
  await t.rejects(answer);
  const lines = await untilLines(usage, 2);
  const input = Math.ceil(JSON.stringify(asked).length / 4);
  t.match(
    lines.find(({ requestId }) => requestId !== leftLine?.requestId),
    { tokensKnown: 'partial', inputTokens: input, outputTokens: 0, costNanoUsd: input * 1250 },
  );
});

function untilLines(usage: UsageGateway, count: number): Promise<readonly UsageLine[]> {
  return eventually(usage.lines, { fits: ({ length }) => length >= count, everyMs: 50 });
}

test('the lines of the last calls are in the ledger after a stop and a start', async (t) => {
  const upstreamUrl = await simulated(t);
  const store = keptStore(t);
  const before = await start(t, upstreamUrl, store, 2);
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => before.post('/v1/chat/completions', chatBody('x'))),
  );
  await Promise.all(answers.map((answer) => answer.text()));
  t.strictSame(await before.gateway.stop(), { code: 0, signal: null });
  const after = await start(t, upstreamUrl, store);
  const lines = await after.lines();
  t.strictSame(new Set(lines.map(({ requestId }) => requestId)), new Set(answers.map(idOf)));
  t.equal((await after.report()).total.calls, 10);
});

test('after a kill of every process, what was answered a second before is in the ledger, once', async (t) => {
  const upstreamUrl = await simulated(t);
  const store = keptStore(t);
  const before = await start(t, upstreamUrl, store, 2);
  const answered: { readonly id: string; readonly at: number }[] = [];
  let killedAt = 0;
  let slowestMs = 0;
  const client = async (): Promise<void> => {
    while (killedAt === 0) {
      const askedAt = performance.now();
      const answer = await before.post('/v1/chat/completions', chatBody('x')).catch(() => null);
      const text = await answer?.text().catch(() => null);
      if (answer === null || text == null) continue;
      answered.push({ id: idOf(answer), at: performance.now() });
      slowestMs = Math.max(slowestMs, performance.now() - askedAt);
    }
  };
  const clients = Array.from({ length: 4 }, client);
  // On a machine that is too busy, the way into the ledger takes longer as calls do.
  const isDue = ({ at }: { at: number }): boolean =>
    at < (killedAt || performance.now()) - 1000 - 4 * slowestMs;
  await eventually(() => answered.filter(isDue).length >= 100, { everyMs: 100, withinMs: 300_000 });
  killedAt = performance.now();
  await before.gateway.end();
  await Promise.all(clients);

  const after = await start(t, upstreamUrl, store);
  const lines = await after.lines();
  const known = new Set(lines.map(({ requestId }) => requestId));
  t.equal(known.size, lines.length, 'none is doubled');
  t.strictSame(
    answered.filter(isDue).filter(({ id }) => !known.has(id)),
    [],
  );
  const { total } = await after.report();
  t.equal(total.calls, lines.length);
  t.equal(
    total.costNanoUsd,
    lines.reduce((sum, { costNanoUsd }) => sum + costNanoUsd, 0),
  );
});

async function metric(usage: UsageGateway, name: string): Promise<number> {
  const text = await (await usage.admin('/metrics')).text();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? 0);
}

test('while the store is gone calls are served, and their lines wait for it', { skip }, async (t) => {
  const postgres = await postgresFor(t);
  const usage = await start(t, await simulated(t), { kind: 'postgres', url: postgres.url, timeoutMs: 3000 });
  const call = async (): Promise<string> => {
    const answer = await usage.post('/v1/chat/completions', chatBody('x'));
    t.equal(answer.status, 200);
    await answer.text();
    return idOf(answer);
  };
  await usage.linesOf(await call());
  await postgres.crash();
  const ids = await Promise.all(Array.from({ length: 20 }, call));
  await usage.gateway.untilLogged(
    ({ msg }) => msg === 'the store accepts no ledger entries: they wait in memory',
  );
  t.equal(await metric(usage, 'gateway_ledger_waiting_entries'), 20);
  t.ok((await metric(usage, 'gateway_ledger_failures_total')) > 0);
  t.equal((await usage.admin('/usage')).status, 503);
  t.equal((await usage.admin('/usage/lines')).status, 503);
  await postgres.restart();
  await usage.linesOf(...ids);
  t.equal((await usage.report()).total.calls, 21, 'none is doubled');
  t.equal(await metric(usage, 'gateway_ledger_dropped_total'), 0);
});
