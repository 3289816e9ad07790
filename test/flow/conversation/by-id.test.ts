import { type Test, test } from 'tap';
import { hashKey } from '../../../src/keys/secret.js';
import { keptIn } from '../../support/conversations.js';
import { eventually } from '../../support/eventually.js';
import { testKey } from '../../support/gateway.js';
import { keyOf, startRouted } from '../../support/routed.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import { type Answer, chunk, completion, jsonAnswer, lastChunk, streamHead } from '../../support/upstream.js';

const otherKey = 'sk-other';

interface Stage {
  readonly upstreams: readonly { readonly requests: readonly { readonly head: string }[] }[];
  call(
    method: string,
    path: string,
    body?: object,
    key?: string,
    headers?: object,
  ): Promise<{ status: number; json: never }>;
  /** Asks for a response, whatever the form of the answer. */
  show(path: string): Promise<string>;
}

/** A gateway that keeps conversations, with two keys. @param isNative its upstreams speak responses */
async function start(
  t: Test,
  answers: readonly Answer[],
  isNative: boolean,
  upstream: object = {},
): Promise<Stage> {
  const { gateway, upstreams } = await startRouted(t, answers, {
    protocols: ['responses'],
    target: isNative ? { responses: true } : {},
    upstream: { kind: 'chat', ...upstream },
    config: {
      ...keptIn(temporaryFolder(t)),
      keys: [testKey, otherKey].map((key) => ({ id: key, hash: hashKey(key), groups: ['default'] })),
    },
  });
  const call = async (method: string, path: string, body?: object, key = testKey, headers: object = {}) => {
    const answer = await fetch(`${gateway.url}/v1/responses${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: answer.status, json: (await answer.json()) as never };
  };
  const show = async (path: string): Promise<string> => {
    const answer = await fetch(`${gateway.url}/v1/responses${path}`, {
      headers: { authorization: `Bearer ${testKey}` },
    });
    return answer.text();
  };
  return { upstreams, call, show };
}

const notFound = { error: { type: 'invalid_request_error', message: /not found/, code: null } };

test('a response that is kept here is shown, listed and deleted by the key that made it', async (t) => {
  const { call, upstreams } = await start(t, [jsonAnswer(200, completion)], false);
  const made = await call('POST', '', { model: 'm', input: 'hello' });
  const { id } = made.json as { id: string };
  t.strictSame((await call('GET', `/${id}`)).json, made.json);
  const items = [
    { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'and?' }] },
    { role: 'user', content: 'more' },
  ];
  const next = await call('POST', '', { model: 'm', input: items, previous_response_id: id });
  const nextId = (next.json as { id: string }).id;
  t.match(await call('GET', `/${nextId}/input_items?order=asc`), {
    status: 200,
    json: {
      object: 'list',
      has_more: false,
      data: [
        { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hello' }] },
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'hi' }] },
        { id: /^msg_[0-9a-f]+_i0$/, type: 'message', role: 'user' },
        { id: /^msg_[0-9a-f]+_i1$/, content: [{ type: 'input_text', text: 'more' }], status: 'completed' },
      ],
    },
  });
  const page = await call('GET', `/${nextId}/input_items?limit=1`);
  const [item] = (page.json as { data: { id: string }[] }).data;
  const referring = { model: 'm', input: [{ type: 'item_reference', id: item?.id }] };
  t.equal(
    (await call('POST', '', referring)).status,
    200,
    'an item is known by the id that it is shown under',
  );
  t.match(await call('GET', `/${nextId}/input_items?limit=0`), {
    status: 400,
    json: { error: { param: 'limit' } },
  });
  t.match(await call('GET', `/${id}?stream=true`), { status: 400, json: { error: { param: 'stream' } } });
  t.match(await call('POST', `/${id}/cancel`), { status: 400, json: { error: { message: /background/ } } });

  for (const [method, below] of [
    ['GET', ''],
    ['DELETE', ''],
    ['GET', '/input_items'],
    ['POST', '/cancel'],
  ] as const)
    t.match(await call(method, `/${id}${below}`, undefined, otherKey), { status: 404, json: notFound });

  t.match(await call('DELETE', `/${id}`), { status: 200, json: { id, object: 'response', deleted: true } });
  t.match(await call('GET', `/${id}`), { status: 404, json: notFound });
  t.match(await call('DELETE', `/${id}`), { status: 404, json: notFound });
  t.match(await call('GET', `/${nextId}/input_items`), { status: 404, json: notFound });
  t.equal(upstreams[0]?.requests.length, 3);
});

const native =
  (id: string): Answer =>
  ({ head, socket }) => {
    const [line = ''] = head.split('\r\n');
    const answer = line.startsWith('POST /v1/responses HTTP')
      ? { id, object: 'response', status: 'completed', output: [], model: 'm' }
      : { asked: line };
    socket.write(jsonAnswer(200, JSON.stringify(answer)));
  };

test('a response that an upstream holds is asked for there, with the key that it was made with', async (t) => {
  const { call, upstreams } = await start(t, [native('resp_native1'), native('resp_native2')], true, {
    apiKeys: ['k0', 'k1', 'k2'],
  });
  t.match(await call('POST', '', { model: 'm', input: 'a', store: true }), { json: { id: 'resp_native1' } });
  const requests = upstreams[0]?.requests ?? [];
  const madeWith = keyOf(requests[0] as never);
  for (const [method, path, asked] of [
    ['GET', '/resp_native1?include[]=a.b&x=1', 'GET /v1/responses/resp_native1?include%5B%5D=a.b HTTP/1.1'],
    [
      'GET',
      '/resp_native1/input_items?limit=3&after=i%0d%0ax',
      'GET /v1/responses/resp_native1/input_items?limit=3&after=i%0D%0Ax HTTP/1.1',
    ],
    ['POST', '/resp_native1/cancel?a=b', 'POST /v1/responses/resp_native1/cancel HTTP/1.1'],
    ['DELETE', '/resp_native1', 'DELETE /v1/responses/resp_native1 HTTP/1.1'],
  ] as const) {
    t.match(await call(method, path, undefined, otherKey), { status: 404, json: notFound });
    t.match(await call(method, path), { status: 200, json: { asked } });
    t.equal(keyOf(requests.at(-1) as never), madeWith);
  }
  t.match(await call('GET', '/resp_native1'), { status: 404, json: notFound }, 'it is deleted');
  t.equal(requests.length, 5);
});

const background: Answer = ({ head, body, socket }) => {
  const response = { id: 'resp_bg', object: 'response', background: true };
  const asked = (JSON.parse(body.toString() || '{}') as { background?: boolean }).background;
  const image = { type: 'image_generation_call', id: 'ig_bg', status: 'completed', result: 'AAAA' };
  const shown = { ...response, status: 'completed', output: [image] };
  const made = asked ? { ...response, status: 'queued', output: [] } : { ...shown, id: 'resp_next' };
  const completed = { type: 'response.completed', sequence_number: 9, response: shown };
  if (head.includes('stream=true'))
    socket.write(
      `${streamHead}${chunk(`event: response.completed\ndata: ${JSON.stringify(completed)}\n\n`)}${lastChunk}`,
    );
  else socket.write(jsonAnswer(200, JSON.stringify(head.startsWith('GET') ? shown : made)));
};

for (const query of ['', '?stream=true'])
  test(`items of a background response are its key's once it is shown (${query})`, async (t) => {
    const { call, show } = await start(t, [background, background], true);
    await call('POST', '', { model: 'm', input: 'a', background: true });
    await show(`/resp_bg${query}`);
    for (const type of ['image_generation_call', 'item_reference']) {
      const next = { model: 'm', input: [{ type, id: 'ig_bg' }], store: false };
      await eventually(async () => (await call('POST', '', next, otherKey)).status === 404);
      t.match(await call('POST', '', next), { status: 200 }, 'its own key has it');
    }
  });

test('what the one upstream of a model made is asked for there as well, unless it was not to be stored', async (t) => {
  const { call } = await start(t, [native('resp_one')], true);
  t.match(await call('POST', '', { model: 'm', input: 'a', store: false }), { status: 200 });
  t.match(await call('GET', '/resp_one'), { status: 404, json: notFound });
  await call('POST', '', { model: 'm', input: 'a' });
  t.match(await call('GET', '/resp_one'), {
    status: 200,
    json: { asked: /^GET \/v1\/responses\/resp_one / },
  });
});

test('a response that was made under a client’s own project is asked for under it, and no other header goes along', async (t) => {
  const { call, upstreams } = await start(t, [native('resp_p')], true, {
    forwardHeaders: ['openai-project'],
  });
  const headers = { 'openai-project': 'proj_x1', 'openai-organization': 'org-x1', session_id: 's' };
  await call('POST', '', { model: 'm', input: 'a' }, testKey, headers);
  for (const [method, path] of [
    ['GET', '/resp_p'],
    ['GET', '/resp_p/input_items'],
    ['POST', '/resp_p/cancel'],
    ['DELETE', '/resp_p'],
  ] as const) {
    t.equal((await call(method, path, undefined, testKey, headers)).status, 200);
    const head = upstreams[0]?.requests.at(-1)?.head ?? '';
    t.match(head, /\r\nopenai-project: proj_x1(?:\r\n|$)/, `${method} ${path}`);
    t.notMatch(head, /openai-organization|session_id/);
  }
});

test('an upstream’s refusal is told, and what concerns our account is not', async (t) => {
  const answers = [
    jsonAnswer(
      404,
      '{"error":{"message":"gone there","type":"invalid_request_error","param":null,"code":null}}',
    ),
    jsonAnswer(
      401,
      '{"error":{"message":"Incorrect API key provided: sk-upstream-0123456789abcdef","code":"invalid_api_key"}}',
    ),
    jsonAnswer(200, '{"says":"sk-upstream-0123456789abcdef"}'),
    jsonAnswer(200, 'no JSON'),
    jsonAnswer(503, '<html>'),
  ];
  const { call } = await start(
    t,
    [
      ({ head, socket }, index) =>
        head.startsWith('POST')
          ? (native('resp_r') as (request: object) => void)({ head, socket })
          : socket.write(answers[index - 1] ?? ''),
    ],
    true,
    { apiKeys: ['sk-upstream-0123456789abcdef'] },
  );
  await call('POST', '', { model: 'm', input: 'a' });
  const told: unknown[] = [];
  for (const _ of answers) {
    const { status, json } = await call('GET', '/resp_r');
    told.push(status);
    t.notMatch(JSON.stringify(json), 'sk-upstream-0123456789abcdef');
  }
  t.strictSame(told, [404, 502, 502, 502, 503]);
});

test('ids that nobody can have been given reach no upstream', async (t) => {
  const { call, upstreams } = await start(t, [native('resp_n')], true);
  for (const id of [
    '..%2f..%2fkeys',
    'resp_%0d%0ax',
    'resp_x%3Fa=b',
    `resp_${'x'.repeat(300)}`,
    'resp_unknown',
  ])
    t.match(await call('GET', `/${id}`), { status: 404 }, id);
  t.match(await call('GET', '/resp_n?stream=true'), { status: 404, json: notFound });
  t.equal(upstreams[0]?.requests.length, 0);
});

test('a thread of messages is no response', async (t) => {
  const message =
    '{"id":"msg_t","type":"message","role":"assistant","model":"x","content":[],"stop_reason":"end_turn",' +
    '"usage":{"input_tokens":1,"output_tokens":1}}';
  const answers = [1, 2].map(() => jsonAnswer(200, message));
  const { gateway, upstreams } = await startRouted(t, answers, {
    protocols: ['messages', 'responses'],
    upstream: { kind: 'messages' },
    config: keptIn(temporaryFolder(t)),
  });
  const headers = {
    authorization: `Bearer ${testKey}`,
    'content-type': 'application/json',
    'anthropic-version': '2023-06-01',
  };
  const said = { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] };
  const body = JSON.stringify({ ...said, thread: { type: 'create' } });
  const made = await fetch(`${gateway.url}/v1/messages`, { method: 'POST', headers, body });
  t.match(await made.json(), { id: 'msg_t' });
  const next = JSON.stringify({ ...said, thread: { type: 'continue', previous_message_id: 'msg_t' } });
  const continued = await fetch(`${gateway.url}/v1/messages`, { method: 'POST', headers, body: next });
  t.equal(continued.status, 200, 'its holder is known');
  const answer = await fetch(`${gateway.url}/v1/responses/msg_t`, { headers });
  t.match({ status: answer.status, json: await answer.json() }, { status: 404, json: notFound });
  t.notOk(upstreams.some(({ requests }) => requests.some(({ head }) => head.startsWith('GET'))));
});

test('where nothing is kept every response is unknown', async (t) => {
  const { gateway } = await startRouted(t, [jsonAnswer(200, completion)], {
    protocols: ['responses'],
    config: { conversations: 'off' },
  });
  const answer = await fetch(`${gateway.url}/v1/responses/resp_1`, {
    headers: { authorization: `Bearer ${testKey}` },
  });
  t.match({ status: answer.status, json: await answer.json() }, { status: 404, json: notFound });
});
