import { type Test, test } from 'tap';
import { errorAnswer, startRouted } from '../../support/routed.js';
import { post } from '../../support/translated.js';
import { type Answer, jsonAnswer, type RawRequest } from '../../support/upstream.js';

const messages = [{ role: 'user', content: 'hi there' }];
const counts = [
  {
    kind: 'messages',
    path: '/v1/messages/count_tokens',
    body: { model: 'm', messages },
    answer: /^\{"input_tokens":\d+\}$/,
  },
  {
    kind: 'chat',
    path: '/v1/responses/input_tokens',
    body: { model: 'm', input: 'hi there' },
    answer: /^\{"object":"response.input_tokens","input_tokens":\d+\}$/,
  },
  {
    kind: 'generateContent',
    path: '/v1beta/models/m:countTokens',
    body: { contents: [{ role: 'user', parts: [{ text: 'hi there' }] }] },
    answer: /^\{"totalTokens":\d+\}$/,
  },
] as const;

/** A gateway whose model has targets of one kind that take the protocol's calls as they come. */
function start(t: Test, kind: string, behaviours: readonly Answer[]) {
  return startRouted(t, behaviours, {
    protocols: [kind === 'chat' ? 'responses' : kind],
    upstream: { kind },
    target: { model: 'real-1', ...(kind === 'chat' ? { responses: true } : {}) },
    config: { routing: { failures: 1, openMs: 600_000 } },
  });
}

const page = (status: number): string => {
  const html = '<html><body>Not here</body></html>';
  return `HTTP/1.1 ${status} No\r\ncontent-type: text/html\r\ncontent-length: ${html.length}\r\n\r\n${html}`;
};
/** Says that there is nothing under the path, in the words of a well-known framework. */
const quoting: Answer = ({ head, socket }) =>
  socket.write(jsonAnswer(404, JSON.stringify({ error: `Cannot POST ${head.split(' ')[1]}` })));

const lacks: readonly (readonly [string, Answer])[] = [
  ['404', errorAnswer(404)],
  ['405', errorAnswer(405)],
  ['a page of 404', page(404)],
  ['a page of 405', page(405)],
  ['404 that quotes the path', quoting],
];

for (const { kind, path, body, answer } of counts) {
  test(`${kind}: tokens are counted here where the upstream does not count them`, async (t) => {
    for (const [what, behaviour] of lacks) {
      const routed = await start(t, kind, [behaviour]);
      for (const _ of [0, 1]) {
        const counted = await post(routed.gateway.port, path, body);
        t.equal(counted.status, 200, what);
        t.match(counted.body, answer);
      }
      t.strictSame(routed.counts(), [1], `${what}: it is asked once`);
      t.match(await routed.gateway.line(({ msg }) => msg === 'request'), {
        outcome: 'complete',
        retries: 0,
        target: 'u0/real-1',
      });
    }
  });

  test(`${kind}: a count of the upstream, and what else it says, passes as it came`, async (t) => {
    const answers = [
      jsonAnswer(200, '{"input_tokens":77}'),
      errorAnswer(400),
      errorAnswer(501),
      jsonAnswer(404, '{"type":"error","error":{"type":"not_found_error","message":"model: real-1"}}'),
      jsonAnswer(404, '{"error":{"code":404,"message":"models/real-1 is not found."}}'),
      jsonAnswer(404, '{"error":{"code":"model_not_found","message":"no such model"}}'),
    ];
    const routed = await start(t, kind, [({ socket }, index) => socket.write(answers[index] ?? '')]);
    for (const expected of answers) {
      const counted = await post(routed.gateway.port, path, body);
      t.equal(counted.body, expected.slice(expected.indexOf('\r\n\r\n') + 4));
    }
    t.strictSame(routed.counts(), [answers.length]);
  });
}

test('a call that is no count gets the 404 of its upstream', async (t) => {
  const routed = await start(t, 'messages', [errorAnswer(404)]);
  const body = { model: 'm', max_tokens: 9, messages };
  for (const _ of [0, 1]) t.equal((await post(routed.gateway.port, '/v1/messages', body)).status, 404);
  t.strictSame(routed.counts(), [2]);
});

test('a compaction is made here, by way of a response of the same upstream, and opens there again', async (t) => {
  const summary = {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    status: 'completed',
    model: 'real-1',
    output: [
      {
        type: 'message',
        id: 'msg_1',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'They greeted.', annotations: [] }],
      },
    ],
    usage: { input_tokens: 3, output_tokens: 4, total_tokens: 7 },
  };
  const behaviour = ({ head, socket }: RawRequest): unknown =>
    socket.write(
      head.startsWith('POST /v1/responses/compact ')
        ? errorAnswer(404)
        : jsonAnswer(200, JSON.stringify(summary)),
    );
  const routed = await start(t, 'chat', [behaviour]);
  const { port } = routed.gateway;
  const input = [{ role: 'user', content: 'hello' }];
  const compacted = await post(port, '/v1/responses/compact', { model: 'm', input });
  t.equal(compacted.status, 200);
  t.match(compacted.head, /x-gateway-path: translated/);
  const { object, output } = JSON.parse(compacted.body);
  t.equal(object, 'response.compaction');
  const compaction = output.find(({ type }: { type: string }) => type === 'compaction');
  t.ok(compaction?.encrypted_content);
  t.match(await routed.gateway.line(({ msg }) => msg === 'request'), { outputTokens: 4, retries: 0 });

  const next = { model: 'm', store: false, input: [...output, { role: 'user', content: 'and now?' }] };
  t.equal((await post(port, '/v1/responses', next)).status, 200);
  const sent = routed.upstreams[0]?.requests.at(-1)?.body.toString() ?? '';
  t.match(sent, 'They greeted.');
  t.notMatch(sent, compaction?.encrypted_content);

  t.equal((await post(port, '/v1/responses/compact', { model: 'm', input })).status, 200);
  t.strictSame(
    routed.upstreams[0]?.requests.map(({ head }) => head.split(' ')[1]),
    ['/v1/responses/compact', '/v1/responses', '/v1/responses', '/v1/responses'],
  );
});

test('each target is asked for itself', async (t) => {
  const routed = await start(t, 'messages', [
    ({ socket }, index) => socket.write(errorAnswer(index === 0 ? 500 : 404)),
    errorAnswer(405),
  ]);
  const body = { model: 'm', messages };
  for (const _ of [0, 1])
    t.match(await post(routed.gateway.port, '/v1/messages/count_tokens', body), {
      status: 200,
      body: /^\{"input_tokens":\d+\}$/,
    });
  t.strictSame(routed.counts(), [1, 1]);
});
