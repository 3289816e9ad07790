import { type Test, test } from 'tap';
import { hashKey } from '../../../src/keys/secret.js';
import type { LedgerRecord } from '../../../src/usage/ledger-record.js';
import { keptIn } from '../../support/conversations.js';
import { costOf } from '../../support/cost.js';
import { countersOf } from '../../support/counters.js';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway, testKey } from '../../support/gateway.js';
import { openLedger } from '../../support/ledger.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import { chunk, jsonAnswer, type RawRequest, startRawUpstream, streamHead } from '../../support/upstream.js';

/** USD for a million tokens: a token of input is a thousandth of a dollar, one of output is two. */
const price = { input: 1000, output: 2000 };
const nanosOfInput = 1_000_000;
const nanosOfOutput = 2_000_000;
const usage = { input_tokens: 30, output_tokens: 20, total_tokens: 50 };
const ofUsage = 30 * nanosOfInput + 20 * nanosOfOutput;

function response(status: string, more: object = {}): string {
  const members = { object: 'response', status, model: 'm', output: [], usage: null, ...more };
  return JSON.stringify({ id: 'resp_1', ...members });
}

interface Stage {
  /** What the upstream says of the response from now on. */
  shown: string;
  /** What it sends to those that request the response as a stream. */
  stream: string;
  readonly gateways: readonly RunningGateway[];
  /** Requests of a method that the upstream has got. */
  asked(method: string): readonly RawRequest[];
  create(more?: object, key?: string): Promise<Response>;
  ask(method: string, path: string): Promise<{ status: number; json: object }>;
  /** Requests the response as a stream. @returns a function that leaves the stream, once so many bytes have been read */
  read(bytes: number, query?: string): Promise<() => void>;
  /** What is in the ledger. */
  lines(): Promise<readonly LedgerRecord[]>;
}

/** Gateways over one store, and an upstream that makes a response in the background. */
async function start(
  t: Test,
  {
    created = jsonAnswer(200, response('queued')) as string | ((request: RawRequest) => unknown),
    gateways = 1,
    model = { price } as object,
  } = {},
): Promise<Stage> {
  const upstream = await startRawUpstream(t, (request) => {
    const isCreation = request.head.startsWith('POST /v1/responses HTTP');
    if (request.head.includes('stream=true')) request.socket.write(stage.stream);
    else if (!isCreation) request.socket.write(stage.shown);
    else if (typeof created === 'string') request.socket.write(created);
    else created(request);
  });
  const path = temporaryFolder(t);
  const config = {
    ...keptIn(path),
    usage: { ledger: true },
    models: {
      m: { protocols: ['responses'], targets: [{ upstream: 'u0', model: 'm', responses: true }], ...model },
    },
    keys: [
      { id: 'plain', hash: hashKey(testKey), groups: ['default'] },
      {
        id: 'limited',
        hash: hashKey('sk-limited'),
        groups: ['default'],
        limits: { tokensPerMinute: 1500 },
        budget: { usd: 10, per: 'month' },
      },
      {
        id: 'budgeted',
        hash: hashKey('sk-budgeted'),
        groups: ['default'],
        budget: { usd: 10, per: 'month' },
      },
      {
        id: 'friend',
        hash: hashKey('sk-friend'),
        groups: ['friends'],
        budget: { usd: 10, per: 'month' },
      },
    ],
    groups: { default: { models: ['*'] }, friends: { models: ['*'], priceFactor: 0 } },
  };
  const all: RunningGateway[] = [];
  for (let i = 0; i < gateways; i++) all.push(await startGateway(t, { upstreams: [upstream.url], config }));
  const [first] = all as [RunningGateway];
  const { lines } = openLedger(t, path);
  const send = (method: string, path: string, key = testKey, body?: object): Promise<Response> =>
    fetch(`${first.url}/v1/responses${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const stage: Stage = {
    shown: jsonAnswer(200, response('in_progress')),
    stream: '',
    gateways: all,
    asked: (method) => upstream.requests.filter(({ head }) => head.startsWith(`${method} `)),
    create: (more = {}, key = testKey) =>
      send('POST', '', key, { model: 'm', input: 'hi', background: true, ...more }),
    ask: async (method, path) => {
      const answer = await send(method, path);
      return { status: answer.status, json: (await answer.json()) as object };
    },
    read: async (bytes, query = '') => {
      const leaving = new AbortController();
      const answer = await fetch(`${first.url}/v1/responses/resp_1?stream=true${query}`, {
        headers: { authorization: `Bearer ${testKey}` },
        signal: leaving.signal,
      });
      const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
      for (let got = 0; got < bytes; ) got += (await reader.read()).value?.length ?? bytes;
      return () => leaving.abort();
    },
    lines: () => lines(1),
  };
  return stage;
}

test('a response in the background is charged what it has used though nobody asks for it', async (t) => {
  const stage = await start(t);
  const [gateway] = stage.gateways as [RunningGateway];
  const made = await stage.create();
  t.equal(made.status, 200);
  t.match(await made.json(), { id: 'resp_1', status: 'queued' });
  t.equal(costOf(gateway), 0, 'what it costs is not known yet');
  stage.shown = jsonAnswer(200, response('completed', { usage }));
  const lines = await stage.lines();
  t.equal(lines.length, 1);
  t.match(lines[0], {
    requestId: made.headers.get('x-request-id') ?? 'none',
    keyId: 'plain',
    model: 'm',
    target: 'u0/m',
    protocol: 'responses',
    status: 200,
    outcome: 'complete',
    inputTokens: 30,
    outputTokens: 20,
    tokensKnown: 'exact',
    costNanoUsd: ofUsage,
  });
  await eventually(() => costOf(gateway) > 0);
  t.equal(costOf(gateway), ofUsage);
  t.strictSame(countersOf(gateway, 'gateway_requests_total'), { 'responses m 200 complete': 1 });
});

test('a client that asks for it settles it, and is charged no more however often it asks', async (t) => {
  const stage = await start(t, { gateways: 2 });
  const cost = () => stage.gateways.reduce((sum, gateway) => sum + costOf(gateway), 0);
  t.equal((await stage.create()).status, 200);
  stage.shown = jsonAnswer(200, response('completed', { usage }));
  for (let i = 0; i < 5; i++)
    t.match(await stage.ask('GET', '/resp_1'), { status: 200, json: { status: 'completed' } });
  await eventually(() => cost() > 0);
  t.equal((await stage.ask('GET', '/resp_1')).status, 200);
  t.equal(cost(), ofUsage);
  t.equal((await stage.lines()).length, 1);
});

test('one whose gateway is gone is settled by another', async (t) => {
  const stage = await start(t, { gateways: 2 });
  const [first, second] = stage.gateways as [RunningGateway, RunningGateway];
  t.equal((await stage.create()).status, 200);
  await first.gateway.drain(0);
  await first.gateway.close();
  stage.shown = jsonAnswer(200, response('incomplete', { usage }));
  await eventually(() => costOf(second) > 0);
  t.equal(costOf(second), ofUsage);
  t.match(await stage.lines(), [{ outcome: 'complete', tokensKnown: 'exact' }]);
});

test('one that has failed before it used anything costs nothing', async (t) => {
  const stage = await start(t);
  t.equal((await stage.create()).status, 200);
  stage.shown = jsonAnswer(200, response('failed', { error: { code: 'server_error', message: 'no' } }));
  t.match(await stage.lines(), [{ outcome: 'upstream_error', tokensKnown: 'none', costNanoUsd: 0 }]);
});

test('one that is cancelled costs what it has written by then where its upstream does not say', async (t) => {
  const stage = await start(t);
  t.equal((await stage.create()).status, 200);
  const said = { type: 'message', content: [{ type: 'output_text', text: 'twelve bytes' }] };
  stage.shown = jsonAnswer(200, response('cancelled', { output: [said] }));
  t.match(await stage.ask('POST', '/resp_1/cancel'), { status: 200, json: { status: 'cancelled' } });
  const [line] = await stage.lines();
  t.match(line, { outcome: 'incomplete', tokensKnown: 'partial', outputTokens: 3 });
  t.equal(line?.costNanoUsd, (line?.inputTokens ?? 0) * nanosOfInput + 3 * nanosOfOutput);
});

/** Events of a stream with 400 bytes of text each. */
function deltas(from: number, count: number): string {
  const event = (_: unknown, index: number): string => {
    const delta = { sequence_number: from + index, delta: 'word '.repeat(80) };
    const data = JSON.stringify({ type: 'response.output_text.delta', ...delta });
    return `event: response.output_text.delta\ndata: ${data}\n\n`;
  };
  return Array.from({ length: count }, event).join('');
}

test('one that is cancelled and reports nothing costs what a stream has shown of it, and nothing for events before', async (t) => {
  for (const [query, first] of [
    ['', 0],
    ['&starting_after=17', 18],
  ] as const) {
    const stage = await start(t);
    t.equal((await stage.create()).status, 200);
    const events = deltas(first, 20 - first);
    stage.stream = streamHead + chunk(events);
    const leave = await stage.read(events.length, query);
    leave();
    await stage.gateways[0]?.line(({ outcome }) => outcome === 'client_gone');
    stage.shown = jsonAnswer(200, response('cancelled'));
    t.match(await stage.ask('POST', '/resp_1/cancel'), { status: 200 });
    t.match(await stage.lines(), [
      { outcome: 'incomplete', tokensKnown: 'partial', outputTokens: 2000 - 100 * first },
    ]);
  }
});

test('one that is cancelled while its stream is read costs nearly all that was shown', async (t) => {
  const stage = await start(t);
  t.equal((await stage.create()).status, 200);
  const events = Array.from({ length: 20 }, (_, index) => deltas(index, 1));
  stage.stream = streamHead + events.map(chunk).join('');
  const leave = await stage.read(events.join('').length);
  stage.shown = jsonAnswer(200, response('cancelled'));
  t.match(await stage.ask('POST', '/resp_1/cancel'), { status: 200 });
  const [line] = await stage.lines();
  t.ok((line?.outputTokens ?? 0) >= 1600, `${line?.outputTokens} tokens`);
  leave();
});

test('one that is deleted before its end costs what its stream has shown, if that is more than it was taken for', async (t) => {
  const stage = await start(t);
  t.equal((await stage.create({ max_output_tokens: 7 })).status, 200);
  const events = deltas(0, 2);
  stage.stream = streamHead + chunk(events);
  (await stage.read(events.length))();
  await stage.gateways[0]?.line(({ outcome }) => outcome === 'client_gone');
  t.equal((await stage.ask('DELETE', '/resp_1')).status, 200);
  t.match(await stage.lines(), [{ tokensKnown: 'estimated', outputTokens: 200 }]);
});

test('one that is deleted before its end costs what it was taken for', async (t) => {
  const stage = await start(t);
  t.equal((await stage.create({ max_output_tokens: 7 })).status, 200);
  t.equal((await stage.ask('DELETE', '/resp_1')).status, 200);
  t.ok(stage.asked('GET').length > 0, 'its upstream is asked first');
  t.match(await stage.lines(), [{ outcome: 'incomplete', tokensKnown: 'estimated', outputTokens: 7 }]);
});

test('one that has ended by the time that it is deleted costs what it has used', async (t) => {
  const stage = await start(t);
  t.equal((await stage.create()).status, 200);
  stage.shown = jsonAnswer(200, response('completed', { usage }));
  t.equal((await stage.ask('DELETE', '/resp_1')).status, 200);
  t.match(await stage.lines(), [{ tokensKnown: 'exact', costNanoUsd: ofUsage }]);
});

const created = `event: response.created\ndata: {"type":"response.created","response":${response('queued')}}\n\n`;

test('the stream of a response in the background that comes to its end is a call as any other', async (t) => {
  const done = response('completed', { usage });
  const completed = `event: response.completed\ndata: {"type":"response.completed","response":${done}}\n\n`;
  const stream = streamHead + chunk(created) + chunk(completed) + chunk('data: [DONE]\n\n');
  const stage = await start(t, { created: `${stream}0\r\n\r\n` });
  const answer = await stage.create({ stream: true });
  await answer.text();
  t.match(await stage.lines(), [{ outcome: 'complete', tokensKnown: 'exact', costNanoUsd: ofUsage }]);
  stage.shown = jsonAnswer(200, done);
  t.equal((await stage.ask('GET', '/resp_1')).status, 200);
  t.equal(costOf(stage.gateways[0] as RunningGateway), ofUsage);
});

test('one whose client leaves its stream is charged what it uses until its end', async (t) => {
  const stage = await start(t, {
    created: ({ socket }) => {
      socket.write(streamHead + chunk(created));
      // Its connection is no part of it: it goes on without.
      socket.on('close', () => {
        stage.shown = jsonAnswer(200, response('completed', { usage }));
      });
    },
  });
  const leaving = new AbortController();
  const answer = await fetch(`${stage.gateways[0]?.url}/v1/responses`, {
    method: 'POST',
    headers: { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', input: 'hi', background: true, stream: true }),
    signal: leaving.signal,
  });
  await answer.body?.getReader().read();
  leaving.abort();
  t.match(await stage.lines(), [{ tokensKnown: 'exact', costNanoUsd: ofUsage }]);
});

test('one whose model costs nothing is in the book, too', async (t) => {
  const stage = await start(t, { model: {} });
  t.equal((await stage.create()).status, 200);
  stage.shown = jsonAnswer(200, response('completed', { usage }));
  t.match(await stage.lines(), [{ inputTokens: 30, outputTokens: 20, costNanoUsd: 0 }]);
});

test('limits hold what a response in the background is taken for until its end', async (t) => {
  const stage = await start(t);
  const bounded = { max_output_tokens: 1000 };
  t.equal((await stage.create(bounded, 'sk-limited')).status, 200);
  const second = await stage.create(bounded, 'sk-limited');
  t.equal(second.status, 429);
  t.match(await second.json(), { error: { code: 'rate_limit_exceeded' } });
});

test('one that a budget or a limit of tokens counts says how long it may become', async (t) => {
  const stage = await start(t);
  for (const key of ['sk-limited', 'sk-budgeted']) {
    for (const more of [{}, { max_output_tokens: null }]) {
      const refused = await stage.create(more, key);
      t.equal(refused.status, 400);
      t.match(await refused.json(), {
        error: { code: 'missing_required_parameter', param: 'max_output_tokens', message: /background/ },
      });
    }
    t.equal((await stage.create({ background: false }, key)).status, 200);
  }
  t.equal(stage.asked('POST').length, 2, 'what was refused has reached no upstream');
  const free = await start(t, { model: { price: {} } });
  t.equal(
    (await free.create({}, 'sk-budgeted')).status,
    200,
    'no budget pays for a model that costs nothing',
  );
  t.equal(
    (await stage.create({}, 'sk-friend')).status,
    200,
    'nor for the calls of a key that are charged at nothing',
  );
});

const delta = `event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"${'some words '.repeat(40)}"}\n\n`;

/** A stream that a client has read for more than it was taken for, and has left. */
async function leftStream(t: Test): Promise<Stage> {
  const deltas = delta.repeat(20);
  let isLeft = false;
  const stage = await start(t, {
    created: ({ socket }) => {
      socket.write(streamHead + chunk(created) + chunk(deltas));
      socket.on('close', () => {
        isLeft = true;
      });
    },
  });
  const leaving = new AbortController();
  const answer = await fetch(`${stage.gateways[0]?.url}/v1/responses`, {
    method: 'POST',
    headers: { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'm',
      input: 'hi',
      background: true,
      stream: true,
      max_output_tokens: 10,
    }),
    signal: leaving.signal,
  });
  const reader = answer.body?.getReader();
  for (let read = 0; read < deltas.length; ) read += (await reader?.read())?.value?.length ?? 0;
  leaving.abort();
  await eventually(() => isLeft);
  return stage;
}

test('one that is deleted before its end costs no less than its stream has brought by then', async (t) => {
  const stage = await leftStream(t);
  t.equal((await stage.ask('DELETE', '/resp_1')).status, 200);
  const [line] = await stage.lines();
  t.match(line, { outcome: 'incomplete', tokensKnown: 'estimated' });
  t.ok((line?.outputTokens ?? 0) > 1000, String(line?.outputTokens));
  t.equal(
    line?.costNanoUsd,
    (line?.inputTokens ?? 0) * nanosOfInput + (line?.outputTokens ?? 0) * nanosOfOutput,
  );
});

test('one that is cancelled and says nothing costs no less than its stream has brought by then', async (t) => {
  const stage = await leftStream(t);
  stage.shown = jsonAnswer(200, response('cancelled'));
  t.equal((await stage.ask('POST', '/resp_1/cancel')).status, 200);
  const [line] = await stage.lines();
  t.match(line, { outcome: 'incomplete', tokensKnown: 'partial' });
  t.ok((line?.outputTokens ?? 0) > 1000, String(line?.outputTokens));
});

test('one that is deleted before its end costs no less than it has written by then', async (t) => {
  const stage = await start(t);
  t.equal((await stage.create({ max_output_tokens: 7 })).status, 200);
  const said = { type: 'message', content: [{ type: 'output_text', text: 'some words '.repeat(400) }] };
  stage.shown = jsonAnswer(200, response('in_progress', { output: [said] }));
  t.equal((await stage.ask('DELETE', '/resp_1')).status, 200);
  const [line] = await stage.lines();
  t.match(line, { outcome: 'incomplete', tokensKnown: 'estimated' });
  t.ok((line?.outputTokens ?? 0) > 500, String(line?.outputTokens));
});

test('one whose id nobody can ask for costs what it was taken for', async (t) => {
  const stage = await start(t, { created: jsonAnswer(200, response('queued', { id: 'a/b=' })) });
  t.equal((await stage.create({ max_output_tokens: 7 })).status, 200);
  t.match(await stage.lines(), [{ tokensKnown: 'estimated', outputTokens: 7 }]);
});

test('an error answer that has an id has begun nothing', async (t) => {
  const error = JSON.stringify({ id: 'resp_1', error: { message: 'no', type: 'invalid_request_error' } });
  const stage = await start(t, { created: jsonAnswer(400, error) });
  t.equal((await stage.create({ max_output_tokens: 7 })).status, 400);
  t.match(await stage.lines(), [{ status: 400, costNanoUsd: 0 }]);
});

test('a second call whose upstream gives the id of one that goes on costs what it was taken for', async (t) => {
  const stage = await start(t);
  t.equal((await stage.create({ max_output_tokens: 7 })).status, 200);
  await eventually(async () => (await stage.ask('GET', '/resp_1')).status === 200);
  t.equal((await stage.create({ max_output_tokens: 8 })).status, 200);
  t.match(await stage.lines(), [{ tokensKnown: 'estimated', outputTokens: 8 }]);
});
