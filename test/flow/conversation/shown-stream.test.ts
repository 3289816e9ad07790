import OpenAI from 'openai6';
import { type Test, test } from 'tap';
import { hashKey } from '../../../src/keys/secret.js';
import { keptIn } from '../../support/conversations.js';
import { costOf } from '../../support/cost.js';
import { eventually } from '../../support/eventually.js';
import { startGateway, testKey } from '../../support/gateway.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import {
  chunk,
  completion,
  jsonAnswer,
  lastChunk,
  type RawRequest,
  startRawUpstream,
  streamHead,
} from '../../support/upstream.js';

const usage = { input_tokens: 30, output_tokens: 20, total_tokens: 50 };
/** In nano-dollars: 30 tokens of input, 20 of output. */
const cost = 30 * 1_000_000 + 20 * 2_000_000;

function response(status: string, more: object = {}): object {
  return { id: 'resp_1', object: 'response', status, model: 'm', output: [], usage: null, ...more };
}

function event(type: string, number: number, more: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number, ...more })}\n\n`;
}

const deltas = [3, 4, 5].map((number) =>
  event('response.output_text.delta', number, { delta: `d${number}` }),
);
const completed = event('response.completed', 6, { response: response('completed', { usage }) });

/** A gateway with two keys, and an upstream that makes a response in the background and shows it as the test says. */
async function start(t: Test, show: (request: RawRequest) => unknown) {
  const upstream = await startRawUpstream(t, (request) => {
    if (request.head.startsWith('POST /v1/responses HTTP'))
      request.socket.write(jsonAnswer(200, JSON.stringify(response('queued'))));
    else if (request.head.includes('stream=true')) show(request);
    else request.socket.write(jsonAnswer(200, JSON.stringify(response('in_progress'))));
  });
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    config: {
      ...keptIn(temporaryFolder(t)),
      models: {
        m: {
          protocols: ['responses'],
          targets: [{ upstream: 'u0', model: 'm', responses: true }],
          price: { input: 1000, output: 2000 },
        },
        translated: { protocols: ['responses'], targets: [{ upstream: 'u0', model: 'm', responses: false }] },
      },
      keys: [testKey, 'sk-other'].map((key) => ({ id: key, hash: hashKey(key), groups: ['default'] })),
    },
  });
  const send = (path: string, init: RequestInit = {}, key = testKey): Promise<Response> =>
    fetch(`${gateway.url}/v1/responses${path}`, {
      ...init,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    });
  const made = await send('', {
    method: 'POST',
    body: JSON.stringify({ model: 'm', input: 'hi', background: true }),
  });
  t.match(await made.json(), { id: 'resp_1' });
  const streamed = () => upstream.requests.filter(({ head }) => head.includes('stream=true'));
  return { gateway, upstream, send, streamed };
}

test('the SDK goes on with the stream of a response in the background, which is charged once', async (t) => {
  const stage = await start(t, ({ socket }) =>
    socket.write(streamHead + chunk(deltas.join('') + completed) + lastChunk),
  );
  const client = new OpenAI({ baseURL: `${stage.gateway.url}/v1`, apiKey: testKey, maxRetries: 0 });
  for (let time = 0; time < 2; time++) {
    const seen: [string, number][] = [];
    for await (const one of await client.responses.retrieve('resp_1', { stream: true, starting_after: 2 }))
      seen.push([one.type, one.sequence_number]);
    t.strictSame(seen, [
      ['response.output_text.delta', 3],
      ['response.output_text.delta', 4],
      ['response.output_text.delta', 5],
      ['response.completed', 6],
    ]);
  }
  t.match(stage.streamed()[0]?.head, /^GET \/v1\/responses\/resp_1\?stream=true&starting_after=2 HTTP/);
  await eventually(() => costOf(stage.gateway) > 0);
  t.equal(costOf(stage.gateway), cost);
});

test('events pass as they come, and a client that leaves ends what is asked of the upstream', async (t) => {
  let isClosed = false;
  const stage = await start(t, ({ socket }) => {
    socket.write(streamHead + chunk(deltas[0] as string));
    socket.on('close', () => {
      isClosed = true;
    });
  });
  const leaving = new AbortController();
  const answer = await stage.send('/resp_1?stream=true', { signal: leaving.signal });
  t.equal(answer.headers.get('content-type'), 'text/event-stream; charset=utf-8');
  const first = await answer.body?.getReader().read();
  t.equal(Buffer.from(first?.value ?? []).toString(), deltas[0]);
  leaving.abort();
  await eventually(() => isClosed);
  t.match(await stage.gateway.line(({ outcome }) => outcome === 'client_gone'), { status: 200 });
  t.equal(costOf(stage.gateway), 0, 'the response goes on');
});

test('a stream that breaks off ends with an error event, one behind the last event is empty', async (t) => {
  const stage = await start(t, ({ socket, head }) => {
    if (head.includes('starting_after=6')) socket.write(streamHead + lastChunk);
    else socket.end(streamHead + chunk(deltas.join('')));
  });
  const broken = await (await stage.send('/resp_1?stream=true')).text();
  t.ok(broken.startsWith(deltas.join('')));
  t.match(broken.slice(deltas.join('').length), /^event: error\ndata: .*"sequence_number":6/);
  const empty = await stage.send('/resp_1?stream=true&starting_after=6');
  t.match([empty.status, await empty.text()], [200, '']);
});

test('the stream of a response that has failed is shown, also where that is its first event', async (t) => {
  const error = { code: 'server_error', message: 'It broke.' };
  const failed = event('response.failed', 6, { response: response('failed', { error, usage }) });
  const stage = await start(t, ({ socket }) => socket.write(streamHead + chunk(failed) + lastChunk));
  const answer = await stage.send('/resp_1?stream=true&starting_after=5');
  t.equal(answer.status, 200);
  t.equal(await answer.text(), failed);
  await eventually(() => costOf(stage.gateway) > 0);
  t.equal(costOf(stage.gateway), cost);
});

test("an upstream's refusal of a stream passes as it came, in good JSON or as an error", async (t) => {
  const tooOld = {
    message: 'This response can no longer be streamed because it is more than 5 minutes old',
    type: 'invalid_request_error',
    param: 'stream',
    code: null,
  };
  const stage = await start(t, ({ socket, head }) =>
    socket.write(
      head.includes('starting_after')
        ? jsonAnswer(200, JSON.stringify(response('completed')))
        : jsonAnswer(400, JSON.stringify({ error: tooOld })),
    ),
  );
  const refused = await stage.send('/resp_1?stream=true');
  t.match([refused.status, await refused.json()], [400, { error: tooOld }]);
  const whole = await stage.send('/resp_1?stream=true&starting_after=3');
  t.match([whole.status, await whole.json()], [200, { status: 'completed' }]);
});

test('what tells of our account is withheld, in the first event and in a later one', async (t) => {
  const told = event('error', 4, {
    code: 'insufficient_quota',
    message: 'You exceeded your current quota, please check your plan and billing details.',
  });
  const stage = await start(t, ({ socket, head }) =>
    socket.write(
      streamHead + chunk(head.includes('starting_after') ? told : `${deltas[0]}${told}`) + lastChunk,
    ),
  );
  const first = await stage.send('/resp_1?stream=true&starting_after=3');
  t.notMatch(await first.text(), /quota/);
  t.ok(first.status >= 500);
  const later = await stage.send('/resp_1?stream=true');
  t.equal(later.status, 200);
  const text = await later.text();
  t.match(text, /event: error/);
  t.notMatch(text, /quota/);
});

test('what is no place, no stream of this key, and none at all is refused before an upstream is asked', async (t) => {
  const stage = await start(t, ({ socket }) => socket.end());
  for (const after of ['x', '-1', '1.5', '9'.repeat(20), '%0d%0a'])
    t.match(await (await stage.send(`/resp_1?stream=true&starting_after=${after}`)).json(), {
      error: { param: 'starting_after', type: 'invalid_request_error' },
    });
  t.equal((await stage.send('/resp_1?stream=true', {}, 'sk-other')).status, 404);
  t.equal(stage.streamed().length, 0);
});

test('a response that the gateway has made was not made in the background, and is no stream', async (t) => {
  const upstream = await startRawUpstream(t, jsonAnswer(200, completion));
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['responses'],
    config: keptIn(temporaryFolder(t)),
  });
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: testKey, maxRetries: 0 });
  const { id } = await client.responses.create({ model: 'm', input: 'hi' });
  const refused = await fetch(`${gateway.url}/v1/responses/${id}?stream=true`, {
    headers: { authorization: `Bearer ${testKey}` },
  });
  t.match(
    [refused.status, await refused.json()],
    [
      400,
      {
        error: {
          message: 'This response cannot be streamed because it was not created with background=true.',
          type: 'invalid_request_error',
          param: 'stream',
        },
      },
    ],
  );
});
