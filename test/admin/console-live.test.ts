import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { type Test, test } from 'tap';
import type { Counts, HistoryView, LiveState } from '../../src/metrics/live-state.js';
import { type ParsedFamily, parseText } from '../metrics/parse-text.js';
import { demoKeyHash } from '../support/demo-key.js';
import { eventually } from '../support/eventually.js';
import { startGateway } from '../support/gateway.js';
import { jsonAnswer, startRawUpstream } from '../support/upstream.js';

const token = 'the-token-of-the-operators';

async function start(t: Test) {
  const broken = await startRawUpstream(t, ({ socket }) =>
    socket.write(jsonAnswer(503, '{"error":{"message":"the secret of the upstream"}}')),
  );
  const chatOf = (upstream: string) => ({
    protocols: ['chat'],
    targets: [{ upstream, model: 'sim-text' }],
    price: { input: 1.25, output: 10 },
  });
  const gateway = await startGateway(t, {
    workers: 2,
    file: {
      admin: { port: 0, token },
      upstreams: {
        local: { kind: 'simulator' },
        broken: { kind: 'chat', baseUrl: broken.url, apiKeys: ['key-of-the-upstream'] },
      },
      models: { good: chatOf('local'), bad: chatOf('broken') },
      usage: { ledger: false },
      groups: { default: { models: ['*'] } },
      keys: [{ id: 'team', hash: demoKeyHash, groups: ['default'] }],
    },
  });
  const url = await gateway.adminUrl();
  const headers = { authorization: `Bearer ${token}` };
  const call = async (model: string, key = 'sk-demo') => {
    const answer = await fetch(`${gateway.baseUrl}/v1/chat/completions?key=${key}`, {
      method: 'POST',
      // One connection each: they spread over the workers.
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] }),
    });
    await answer.text();
    return answer.status;
  };
  const metrics = async () => parseText(await (await fetch(`${url}/metrics`, { headers })).text());
  return { gateway, url, headers, call, metrics };
}

/** Follows the stream until it is told to stop, or the stream ends. */
function follow(url: string, headers: Record<string, string>) {
  const stop = new AbortController();
  const seen = {
    history: [] as HistoryView[][],
    points: [] as HistoryView[],
    states: [] as LiveState[],
    text: '',
  };
  const ended = (async () => {
    const answer = await fetch(`${url}/console/live`, { headers, signal: stop.signal });
    let rest = '';
    for await (const text of (answer.body as ReadableStream<Uint8Array>).pipeThrough(
      new TextDecoderStream(),
    )) {
      seen.text += text;
      const blocks = (rest + text).split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        const [, event, data = ''] = /^event: (.*)\ndata: (.*)$/.exec(block) ?? [];
        const value: unknown = JSON.parse(data);
        if (event === 'history') seen.history.push(value as HistoryView[]);
        if (event === 'point') seen.points.push(value as HistoryView);
        if (event === 'state') seen.states.push(value as LiveState);
      }
    }
  })().catch((error: unknown) => error);
  const until = (condition: () => boolean) => eventually(condition, { everyMs: 20 });
  return { seen, until, ended, stop: () => stop.abort() };
}

/** Sums of a family's samples by one label. */
function sums(family: ParsedFamily | undefined, label: string, name = family?.samples[0]?.name) {
  const by: Record<string, number> = {};
  for (const { name: own, labels, value } of family?.samples ?? []) {
    const of = labels[label] ?? '';
    if (own === name) by[of] = (by[of] ?? 0) + value;
  }
  return by;
}

function requestsBy(views: readonly (Counts & { readonly name: string })[]): Record<string, number> {
  return Object.fromEntries(views.map(({ name, requests }) => [name, requests]));
}

const total = (by: Readonly<Record<string, number>>) =>
  Object.values(by).reduce((sum, each) => sum + each, 0);

test('what is told live is what the metrics say', async (t) => {
  const { gateway, url, headers, call, metrics } = await start(t);
  const { seen, until, ended, stop } = follow(url, headers);
  await until(() => seen.states.length > 0);
  t.equal(seen.history.length, 1);
  t.match(seen.states[0], {
    gateway: { url: gateway.baseUrl, demo: false, notReady: null, workers: { wanted: 2, serving: 2 } },
    totals: { requests: 0 },
    requests: [],
  });
  const calls = Array.from({ length: 12 }, () => call('good'));
  t.same(new Set(await Promise.all(calls)), new Set([200]));
  t.equal(await call('missing'), 404);
  t.equal(await call('good', 'sk-wrong'), 401);
  t.same([await call('bad'), await call('bad')], [503, 503]);
  // A worker that is slow to answer is missing in a state, and there again in a later one.
  const isWhole = ({ totals, targets, requests }: LiveState) =>
    totals.requests === 16 && requests.length === 16 && targets[0]?.workersInState === 2;
  await until(() => seen.states.some(isWhole));
  const state = seen.states.find(isWhole) as LiveState;
  const families = await metrics();
  const of = (name: string, label: string) => sums(families.get(name), label);

  t.match(state.totals, { requests: 16, errors: 2, refusals: 2 });
  t.same(requestsBy(state.models), of('gateway_requests_total', 'model'));
  t.same(requestsBy(state.models), { good: 12, bad: 2, none: 2 });
  t.same(requestsBy(state.protocols), of('gateway_requests_total', 'protocol'));
  t.same(requestsBy(state.keys), of('gateway_key_requests_total', 'key'));
  t.match(state.keys, [
    { name: 'team', requests: 15, errors: 2, refusals: 1 },
    { name: 'none', requests: 1, refusals: 1 },
  ]);
  t.match(of('gateway_tokens_total', 'kind'), {
    input: state.totals.tokens.input,
    output: state.totals.tokens.output,
  });
  t.ok(state.totals.tokens.output > 0);
  t.equal(state.totals.costUsd, total(of('gateway_cost_usd_total', 'model')));
  t.ok(state.totals.costUsd > 0);
  t.equal(state.totals.bytesIn, total(of('gateway_request_bytes_total', '')));
  t.equal(state.totals.bytesOut, total(of('gateway_response_bytes_total', '')));

  const attempts = of('gateway_upstream_attempts_total', 'target');
  t.same(Object.fromEntries(state.targets.map(({ name, attempts: own }) => [name, own])), attempts);
  t.match(state.targets, [
    {
      name: 'local/sim-text',
      state: 'closed',
      workersInState: 2,
      attempts: 12,
      failures: {},
      lastFailure: null,
    },
    { name: 'broken/sim-text', lastFailure: { message: 'status 503' } },
  ]);
  const failed = state.targets[1];
  t.equal(failed?.failures.status_5xx, failed?.attempts);

  t.equal(new Set(state.requests.map(({ id }) => id)).size, 16);
  const logged = await gateway.untilLogged(({ id }) => id === state.requests[0]?.id);
  t.match(state.requests[0], { durationMs: logged.durationMs, status: logged.status, path: logged.path });
  const byStatus = (wanted: number) => state.requests.filter(({ status }) => status === wanted);
  t.match(byStatus(200)[0], {
    path: '/v1/chat/completions',
    protocol: 'chat',
    model: 'good',
    key: 'team',
    target: 'local/sim-text',
    outcome: 'complete',
    error: null,
  });
  t.equal(byStatus(200).length, 12);
  t.match(byStatus(401), [{ key: null, model: null, error: 'invalid_api_key', outcome: 'refused' }]);
  t.match(byStatus(404), [{ key: 'team', model: null, error: 'model_not_found' }]);
  t.match(byStatus(503), [{ target: 'broken/sim-text' }, { target: 'broken/sim-text' }]);

  await until(() => seen.points.reduce((sum, each) => sum + each.requestsPerSecond * each.seconds, 0) > 15.5);
  const made = (rate: (point: HistoryView) => number) =>
    Math.round(seen.points.reduce((sum, each) => sum + rate(each) * each.seconds, 0));
  t.equal(
    made((each) => each.requestsPerSecond),
    16,
  );
  t.equal(
    made((each) => each.errorsPerSecond),
    2,
  );
  t.equal(
    made((each) => each.outputTokensPerSecond),
    state.totals.tokens.output,
  );

  const points = [...seen.points];
  const late = follow(url, headers);
  await late.until(() => late.seen.history.length > 0);
  const since = late.seen.history[0]?.filter(({ at }) => at >= (points[0]?.at ?? 0)) ?? [];
  t.same(since.slice(0, points.length), points);
  late.stop();
  await late.ended;
  for (const secret of ['sk-demo', 'sk-wrong', 'secret', 'key-of-the-upstream', token]) {
    t.notOk(seen.text.includes(secret), secret);
  }
  stop();
  t.match(await ended, { name: 'AbortError' });
});

test('the stream wants the token, has room for sixteen, and ends with the gateway', async (t) => {
  const { gateway, url, headers } = await start(t);
  t.equal((await fetch(`${url}/console/live`)).status, 401);
  const head = await fetch(`${url}/console/live`, { method: 'HEAD', headers });
  t.equal(head.headers.get('content-type'), 'text/event-stream');
  const viewers = Array.from({ length: 16 }, () => follow(url, headers));
  for (const { until, seen } of viewers) await until(() => seen.states.length > 0);
  const full = await fetch(`${url}/console/live`, { headers });
  t.equal(full.status, 503);
  t.match(await full.json(), { error: { code: 'overloaded', message: /16 consoles are open/ } });
  viewers[0]?.stop();
  await viewers[0]?.ended;
  const notFull = async (): Promise<Response | null> => {
    const answer = await fetch(`${url}/console/live`, { headers });
    if (answer.status !== 503) return answer;
    await answer.text();
    return null;
  };
  const again = await eventually(notFull, { what: 'room for a console', everyMs: 20 });
  t.equal(again.status, 200);
  await again.body?.cancel();
  t.match(await gateway.stop(), { code: 0 });
  for (const { ended } of viewers) await ended;
});

test('a client that leaves in the middle of its request does no harm', async (t) => {
  const { url, headers } = await start(t);
  const { port } = new URL(url);
  for (let i = 0; i < 40; i++) {
    const socket = connect(Number(port), '127.0.0.1', () => {
      socket.write(`GET /console/live HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${token}\r\n\r\n`);
      if (i % 2 === 0) socket.resetAndDestroy();
      else socket.end();
    });
    socket.on('error', () => {}).resume();
  }
  await setTimeout(300);
  const { seen, until, stop } = follow(url, headers);
  await until(() => seen.states.length > 1);
  t.pass();
  stop();
});
