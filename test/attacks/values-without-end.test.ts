import { gzipSync } from 'node:zlib';
import { type Test, test } from 'tap';
import { GatewayError } from '../../src/errors.js';
import { judgeEvent } from '../../src/protocols/realtime/events.js';
import { costsMore, isObjectText, parseJson } from '../../src/wire/json.js';
import { startGateway } from '../support/gateway.js';
import { ask, mediaConfig } from '../support/media/gateway.js';
import { connect, type Event } from '../support/responses-socket.js';
import { completion, jsonAnswer, startRawUpstream } from '../support/upstream.js';

/* A few kilobytes of gzip are millions of tiny values, which take seconds to parse: nothing else is served meanwhile. */

const mebibyte = 1024 * 1024;
const tiny = (bytes: number, unit = '{},'): string => `[${unit.repeat(bytes / unit.length)}0]`;
const junk = tiny(2 * mebibyte);
const hi = '"messages":[{"role":"user","content":"hi"}]';

/** Characters of the longest text that was parsed while `work` ran. */
async function longestParsed(work: () => Promise<void>): Promise<number> {
  let longest = 0;
  const { parse } = JSON;
  JSON.parse = ((text: string, ...rest: []) => {
    longest = Math.max(longest, text.length);
    return parse(text, ...rest);
  }) as typeof JSON.parse;
  try {
    await work();
  } finally {
    JSON.parse = parse;
  }
  return longest;
}

async function start(t: Test, answer: string, limits: object = {}) {
  const upstream = await startRawUpstream(t, answer);
  const native = ['chat', 'images', 'video', 'embeddings', 'completions', 'moderations', 'rerank', 'audio'];
  const gateway = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: {
        c: { baseUrl: upstream.url },
        m: { kind: 'messages', baseUrl: upstream.url },
        g: { kind: 'generateContent', baseUrl: upstream.url },
      },
      models: {
        n: { protocols: native, targets: [{ upstream: 'c' }] },
        c: { protocols: ['messages', 'responses', 'generateContent'], targets: [{ upstream: 'c' }] },
        m: { protocols: ['chat', 'responses'], targets: [{ upstream: 'm' }] },
        g: { protocols: ['chat', 'messages'], targets: [{ upstream: 'g' }] },
        d: { protocols: ['generateContent', 'images'], targets: [{ upstream: 'c' }] },
      },
      config: { limits },
    }),
  });
  const post = (path: string, text: string, headers = {}) =>
    ask(gateway, 'POST', path, {
      body: gzipSync(text),
      headers: {
        'content-encoding': 'gzip',
        'content-type': 'application/json',
        'anthropic-version': '2023-06-01',
        ...headers,
      },
    });
  return { upstream, gateway, post };
}

const bodies: readonly (readonly [string, string])[] = [
  ['/v1/chat/completions', `{"model":"n",${hi},"x":${junk}}`],
  [
    '/v1/chat/completions',
    `{"model":"n","messages":[{"role":"user","content":"a"}],"temperature":"x","x":${junk}}`,
  ],
  ['/v1/chat/completions', `{"model":"nobody",${hi},"x":${junk}}`],
  [
    '/v1/chat/completions',
    `{"model":"m",${hi},"tools":[{"type":"function","function":{"name":"f","parameters":{"enum":${junk}}}}]}`,
  ],
  ['/v1/chat/completions', `{"model":"n",${hi},"x":{${tiny(2 * mebibyte, '"a":1,').slice(1, -2)}"b":1}}`],
  ['/v1/chat/completions', `{"model":"n",${hi},"x":${junk},"y":"`],
  ['/v1/messages', `{"model":"c","max_tokens":9,${hi},"x":${junk}}`],
  ['/v1/responses', `{"model":"c","input":"hi","x":${junk}}`],
  ['/v1beta/models/c:generateContent', `{"contents":[{"parts":[{"text":"hi"}]}],"x":${junk}}`],
  ['/v1/embeddings', `{"model":"n","input":"a","x":${junk}}`],
  ['/v1/moderations', `{"model":"n","input":"a","x":${junk}}`],
  ['/v1/rerank', `{"model":"n","query":"a","documents":["a"],"x":${junk}}`],
  ['/v1/completions', `{"model":"n","prompt":"a","x":${junk}}`],
  ['/v1/audio/speech', `{"model":"n","input":"a","voice":"a","x":${junk}}`],
  ['/v1/images/generations', `{"model":"n","prompt":"a","x":${junk}}`],
  ['/v1/videos', `{"model":"n","prompt":"a","x":${junk}}`],
  ['/v1/video/generations', `{"model":"n","prompt":"a","x":${junk}}`],
  ['/vendork/v1/videos/text2video', `{"model_name":"n","prompt":"a","x":${junk}}`],
  ['/vendorj/?Action=CVSync2AsyncSubmitTask&Version=2022-08-31', `{"req_key":"n","prompt":"a","x":${junk}}`],
  ['/vendorj/?Action=CVSync2AsyncGetResult&Version=2022-08-31', `{"req_key":"n","task_id":"a","x":${junk}}`],
];

test('a body of a million tiny values is refused before it is parsed, whatever path it takes', async (t) => {
  const { upstream, post } = await start(t, jsonAnswer(200, completion));
  const longest = await longestParsed(async () => {
    for (const [path, text] of bodies) {
      const answer = await post(path, text);
      t.equal(answer.status, 400, `${path} ${text.slice(0, 60)}`);
      t.match(answer.text, /has more than 500000 values/, path);
    }
  });
  t.ok(longest < 10_000, `${longest} characters parsed at once`);
  t.equal(upstream.requests.length, 0);
});

test('a shorter one is passed on as it came, and refused where it would be parsed', async (t) => {
  const { upstream, post } = await start(t, jsonAnswer(200, completion));
  const short = tiny(0.9 * mebibyte);
  const longest = await longestParsed(async () => {
    t.equal((await post('/v1/chat/completions', `{"model":"n",${hi},"x":${short}}`)).status, 200);
    const refused = [
      ['/v1/chat/completions', `{"model":"m",${hi},"x":${short}}`],
      ['/v1/chat/completions', `{"model":"n","messages":[],"temperature":"x","n":"y","x":${short}}`],
      ['/v1/messages', `{"model":"c","max_tokens":9,${hi},"x":${short}}`],
      ['/v1/responses', `{"model":"c","input":"hi","x":${short}}`],
      ['/v1beta/models/c:generateContent', `{"contents":[{"parts":[{"text":"hi"}]}],"x":${short}}`],
      ['/v1/images/generations', `{"model":"n","prompt":"a","x":${short}}`],
      ['/v1/rerank', `{"model":"n","query":"a","documents":["a"],"x":${short}}`],
      ['/v1/embeddings', `{"model":"n","input":"a","encoding_format":"base64","x":${short}}`],
      ['/v1beta/models/d:generateContent', `{"contents":[{"parts":[{"text":"hi"}]}],"x":${short}}`],
    ] as const;
    for (const [path, text] of refused) {
      const answer = await post(path, text);
      t.equal(answer.status, 400, path);
      t.match(answer.text, /has more than 500000 values/, path);
    }
  });
  t.ok(longest < 10_000, `${longest} characters parsed at once`);
  t.equal(upstream.requests.length, 1);
});

test('no content type takes a body past the bound', async (t) => {
  const { post } = await start(t, jsonAnswer(200, completion));
  const answer = await post('/v1/chat/completions', `{"model":"n",${hi},"x":${junk}}`, {
    'content-type': 'multipart/form-data; boundary=b',
  });
  t.equal(answer.status, 400);
  t.match(answer.json, { error: { code: 'invalid_request_body' } });
});

test('long bodies of few values pass, and those that the config allows', async (t) => {
  const { post } = await start(t, jsonAnswer(200, completion));
  const text = JSON.stringify('{[,:"\\'.repeat(mebibyte));
  t.equal(
    (await post('/v1/chat/completions', `{"model":"n","messages":[{"role":"user","content":${text}}]}`))
      .status,
    200,
  );
  const tokens = tiny(mebibyte / 2, '17,');
  t.equal((await post('/v1/embeddings', `{"model":"n","input":[${tokens}]}`)).status, 200);
  const other = await start(t, jsonAnswer(200, completion), { bodyValues: 5_000_000 });
  t.equal((await other.post('/v1/chat/completions', `{"model":"n",${hi},"x":${junk}}`)).status, 200);
});

test('values inside of the strings of a call that is translated are looked at, and not made', async (t) => {
  const { upstream, post } = await start(t, jsonAnswer(500, '{"error":{"message":"busy"}}'));
  const dense = JSON.stringify(`{"x":${tiny(4 * mebibyte)}}`);
  const used = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":${dense}}}]}`;
  const text = `"messages":[{"role":"user","content":"hi"},${used},{"role":"tool","tool_call_id":"a","content":${dense}}]`;
  for (const model of ['m', 'g']) {
    const longest = await longestParsed(async () => {
      t.equal((await post('/v1/chat/completions', `{"model":"${model}",${text}}`)).status, 500);
    });
    // The body itself, in which they are strings.
    t.ok(longest > 8 * mebibyte, `${longest}`);
  }
  t.equal(upstream.requests.length, 2);
  let texts = 0;
  const one = `{"x":${tiny(100_000)}}`;
  const longest = await longestParsed(async () => {
    for (; texts < 100; texts++) isObjectText(one);
  });
  t.equal(longest, 0);
  for (const [value, is] of [
    [one, true],
    [` {"a":"${'x'.repeat(5000)}"}`, true],
    ['{"city":"Paris"}', true],
    ['[]', false],
    ['{"a":}', false],
    [`{"x":${tiny(100_000)}`, false],
    [`{"a":${'['.repeat(2000)}${']'.repeat(2000)}}`, false],
    ['', false],
  ] as const)
    t.equal(isObjectText(value), is, value.slice(0, 30));
});

test('an upstream that answers with millions of tiny values fails, and its answer is not parsed', async (t) => {
  const huge = tiny(16 * mebibyte);
  for (const [model, path, body] of [
    ['c', '/v1/messages', `"max_tokens":9,${hi}`],
    ['g', '/v1/chat/completions', hi],
    ['n', '/v1/images/generations', '"prompt":"a","response_format":"b64_json"'],
  ] as const) {
    const { post } = await start(
      t,
      jsonAnswer(200, completion.replace('{', `{"data":${huge},"candidates":[],"x":`)),
    );
    const longest = await longestParsed(async () => {
      t.equal((await post(path, `{"model":"${model}",${body}}`)).status, 502, path);
    });
    t.ok(longest < mebibyte, `${longest}`);
  }
});

test('a message of a WebSocket with that many is refused, and its socket lives', async (t) => {
  const { url } = await startGateway(t, { demo: 'simulator' });
  const socket = await connect(t, url);
  socket.send(`{"type":"response.create","model":"sim-text","input":"hi","x":${junk}}`);
  const [event] = (await socket.answer()) as [Event];
  t.equal(event.type, 'error');
  t.match(String(event.error?.message), /has more than 500000 values/);
  const model = {
    model: 'm',
    upstreamModel: 'm',
    allowed: new Set<never>(),
    transcribeBy: (name: string) => name,
  };
  const fault = judgeEvent(Buffer.from(`{"type":"x","y":${junk}}`), false, model);
  t.ok(fault instanceof GatewayError);
  t.match(fault, { kind: 'invalid_request_body' });
});

test('what a text costs does not depend on how it ends, or on what stands in its strings', (t) => {
  const most = 1000;
  for (const [text, is] of [
    ['{},'.repeat(400), true],
    [`${'{},'.repeat(400)}"`, true],
    ['1,'.repeat(1001), true],
    ['1,'.repeat(999), false],
    ['"a":1,'.repeat(201), true],
    [JSON.stringify('{"a":1},'.repeat(5000)), false],
  ] as const) {
    t.equal(costsMore(Buffer.from(text), most), is, text.slice(0, 20));
    if (text.endsWith('"')) t.equal(parseJson(text, most) === undefined, is, text.slice(0, 20));
  }
  t.end();
});
