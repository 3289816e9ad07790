import { test } from 'tap';
import { testKey } from '../support/gateway.js';
import { exchange } from '../support/raw-client.js';
import { fc } from '../support/seed.js';
import { startTranslated, type TranslatedStage, textProtocols } from '../support/translated.js';
import { jsonAnswer, type RawRequest, streamHead } from '../support/upstream.js';

const deep = (levels: number, inner = '1'): string => '['.repeat(levels) + inner + ']'.repeat(levels);
const deepObject = (levels: number): string => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
/** Values that break a reader which does not look: numbers, texts, depth, names that every object has. */
const values = [
  'null',
  'true',
  '-1',
  '1e999',
  '1e-999',
  '9007199254740993',
  '123456789012345678901234567890',
  '""',
  '"\\ud800"',
  '"\\u0000"',
  '"%"',
  '"%E0%A4%A"',
  '"data:image/png;base64,***"',
  '"data:,"',
  '"http://["',
  '"http://%zz"',
  '"(["',
  '"__proto__"',
  '"constructor"',
  '"toString"',
  '[]',
  '[null]',
  '[[]]',
  '{}',
  '{"__proto__":{"a":1}}',
  '{"constructor":{"prototype":{"a":1}}}',
  '{"toString":1,"valueOf":1,"hasOwnProperty":1}',
  '{"type":"__proto__"}',
  '{"type":"object","properties":{"__proto__":{"type":"string"}},"$ref":"#"}',
  '{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}',
  deep(60),
  deep(5000),
  deepObject(60),
  deepObject(5000),
];

interface Face {
  readonly path: string;
  readonly body: (member: string) => string;
  readonly members: readonly string[];
}
const faces: Readonly<Record<string, Face>> = {
  chat: {
    path: '/v1/chat/completions',
    body: (member) => `{"model":"m","messages":[{"role":"user","content":"x"}]${member}}`,
    members: [
      'messages',
      'tools',
      'tool_choice',
      'response_format',
      'stop',
      'logit_bias',
      'metadata',
      'n',
      'seed',
      'max_tokens',
      'stream_options',
      'user',
      'reasoning_effort',
      'temperature',
      'stream',
      'model',
      '__proto__',
    ],
  },
  responses: {
    path: '/v1/responses',
    body: (member) => `{"model":"m"${member.includes('"input"') ? '' : ',"input":"x"'}${member}}`,
    members: [
      'input',
      'tools',
      'tool_choice',
      'text',
      'reasoning',
      'include',
      'previous_response_id',
      'metadata',
      'store',
      'max_output_tokens',
      'instructions',
      'truncation',
      'stream',
      '__proto__',
    ],
  },
  messages: {
    path: '/v1/messages',
    body: (member) =>
      `{"model":"m","max_tokens":9${member.includes('"messages"') ? '' : ',"messages":[{"role":"user","content":"x"}]'}${member}}`,
    members: [
      'messages',
      'system',
      'tools',
      'tool_choice',
      'thinking',
      'stop_sequences',
      'metadata',
      'top_k',
      'stream',
      'output_config',
      '__proto__',
    ],
  },
  generateContent: {
    path: '/v1beta/models/m:generateContent',
    body: (member) =>
      `{${member.includes('"contents"') ? '' : '"contents":[{"role":"user","parts":[{"text":"x"}]}],'}${member.slice(1)}}`.replace(
        ',}',
        '}',
      ),
    members: [
      'contents',
      'tools',
      'toolConfig',
      'generationConfig',
      'systemInstruction',
      'safetySettings',
      'cachedContent',
      '__proto__',
    ],
  },
};

/** Where a hostile value may stand deeper in a body. */
const nests: readonly ((value: string) => string)[] = [
  (value) => value,
  (value) => `[${value}]`,
  (value) => `[{"role":"user","content":${value}}]`,
  (value) => `[{"role":"user","content":[{"type":"text","text":${value}}]}]`,
  (value) => `[{"role":"user","content":[{"type":"image_url","image_url":{"url":${value}}}]}]`,
  (value) => `[{"role":"user","parts":[{"inlineData":{"mimeType":${value},"data":${value}}}]}]`,
  (value) =>
    `[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":${value}}}]}]`,
  (value) => `[{"type":"function","function":{"name":"f","parameters":${value}}}]`,
  (value) => `[{"type":"function","name":"f","parameters":${value}}]`,
  (value) => `[{"name":"f","input_schema":${value}}]`,
  (value) => `[{"functionDeclarations":[{"name":"f","parameters":${value}}]}]`,
  (value) => `{"type":"json_schema","json_schema":{"name":"f","schema":${value}}}`,
  (value) => `{"responseSchema":${value},"responseMimeType":"application/json"}`,
];

function request(path: string, body: string | Buffer): Buffer {
  return Buffer.concat([
    Buffer.from(
      `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\nanthropic-version: 2023-06-01\r\n` +
        `content-type: application/json\r\nconnection: close\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n`,
    ),
    Buffer.from(body),
  ]);
}

function faultsOf({ gateway, lines }: TranslatedStage): readonly string[] {
  const rows = gateway.metrics().counters.find(([name]) => name === 'gateway_faults_total');
  const told = lines.flatMap((line) =>
    line.where === undefined ? [] : [JSON.stringify(line.err).slice(0, 600)],
  );
  return rows === undefined || rows[2].length === 0 ? [] : [`${rows[1]}`, ...told];
}

const kinds = ['chat', 'messages', 'generateContent'];
const good = '{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[]}';

for (const kind of kinds) {
  test(`no body of a client is a fault of ours, whatever stands in it: upstream of ${kind}`, {
    timeout: 120_000,
  }, async (t) => {
    const stage = await startTranslated(t, { kind, answer: jsonAnswer(200, good) });
    const arbitrary = fc.record({
      protocol: fc.constantFrom(...textProtocols),
      pick: fc.nat(1000),
      value: fc.constantFrom(...values),
      nest: fc.constantFrom(...nests),
    });
    for (const { protocol, pick, value, nest } of fc.sample(arbitrary, 120)) {
      const face = faces[protocol] as Face;
      const member = face.members[pick % face.members.length] as string;
      const body = face.body(`,"${member}":${nest(value)}`);
      const { status } = await exchange(stage.port, request(face.path, body));
      if (status < 200 || status === 500) t.fail(`${status} for ${protocol}.${member} ${body.slice(0, 300)}`);
      const faults = faultsOf(stage);
      if (faults.length > 0) {
        t.strictSame(faults, [], `${protocol} ${body.slice(0, 300)}`);
        return;
      }
    }
    t.strictSame(faultsOf(stage), []);
  });

  test(`no answer is a fault of ours, whatever stands in it: upstream of ${kind}`, {
    timeout: 120_000,
  }, async (t) => {
    let answer = '';
    const stage = await startTranslated(t, {
      kind,
      answer: ({ socket }: RawRequest) => socket.end(answer),
    });
    const shapes: readonly ((value: string) => string)[] = [
      (value) => value,
      (value) => `{"error":${value}}`,
      (value) => `{"choices":${value},"usage":${value}}`,
      (value) =>
        `{"choices":[{"index":${value},"message":${value},"delta":${value},"finish_reason":${value}}]}`,
      (value) =>
        `{"choices":[{"index":0,"delta":{"content":${value},"tool_calls":[{"index":${value},"id":${value},"function":{"name":${value},"arguments":${value}}}]}}]}`,
      (value) =>
        `{"choices":[{"index":0,"message":{"role":"assistant","content":${value},"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":${value}}}]}}]}`,
      (value) => `{"type":"message","content":${value},"usage":${value},"stop_reason":${value}}`,
      (value) =>
        `{"type":"message","content":[{"type":${value},"text":${value},"input":${value},"signature":${value}}]}`,
      (value) => `{"type":"message_start","message":${value}}`,
      (value) => `{"type":"content_block_start","index":${value},"content_block":${value}}`,
      (value) => `{"type":"content_block_delta","index":${value},"delta":${value}}`,
      (value) => `{"candidates":${value},"usageMetadata":${value}}`,
      (value) =>
        `{"candidates":[{"content":{"parts":[{"text":${value},"functionCall":{"name":${value},"args":${value}},"thoughtSignature":${value}}]},"finishReason":${value}}]}`,
    ];
    const arbitrary = fc.record({
      protocol: fc.constantFrom(...textProtocols),
      streamed: fc.boolean(),
      values: fc.array(fc.tuple(fc.constantFrom(...shapes), fc.constantFrom(...values)), {
        minLength: 1,
        maxLength: 3,
      }),
      status: fc.constantFrom(200, 200, 200, 400, 429, 500),
    });
    for (const plan of fc.sample(arbitrary, 120)) {
      const texts = plan.values.map(([shape, value]) => shape(value));
      const events = `${texts.map((text) => `data: ${text}\n\n`).join('')}data: [DONE]\n\n`;
      answer =
        plan.streamed && plan.status === 200
          ? `${streamHead}${Buffer.byteLength(events).toString(16)}\r\n${events}\r\n0\r\n\r\n`
          : jsonAnswer(plan.status, texts[0] as string, 'connection: close\r\n');
      const face = faces[plan.protocol] as Face;
      const isGoogle = plan.protocol === 'generateContent';
      const path = plan.streamed && isGoogle ? '/v1beta/models/m:streamGenerateContent?alt=sse' : face.path;
      const body = face.body(isGoogle ? ',"safetySettings":[]' : `,"stream":${plan.streamed}`);
      const told = await exchange(stage.port, request(path, body));
      const faults = faultsOf(stage);
      if (faults.length > 0) {
        t.strictSame(faults, [], `${plan.protocol} ${answer.slice(0, 500)}`);
        return;
      }
      if (told.status < 200) t.fail(`no answer for ${plan.protocol} ${answer.slice(0, 300)}`);
    }
    t.strictSame(faultsOf(stage), []);
  });
}

test('no path, query or header is a fault of ours', { timeout: 120_000 }, async (t) => {
  const stage = await startTranslated(t, { answer: jsonAnswer(200, good) });
  const targets = [
    '/%',
    '/%zz',
    '/%E0%A4%A',
    '//',
    '/v1/models/%',
    '/v1/models/%00',
    '/v1/models/__proto__',
    '/v1/models/constructor',
    '/v1beta/models/%E0%A4%A:generateContent',
    '/v1beta/models/__proto__:generateContent',
    '/v1/videos/%',
    '/v1/videos/__proto__',
    '/v1/videos/__proto__/content',
    '/v1beta/models/m:constructor',
    '/v1beta/models?pageToken=%&pageSize=1e999',
    '/v1/models?limit=-1&after_id=%zz',
    '/v1/models?__proto__=1',
    '/v1/models?key=%',
    '/v1/realtime?model=%',
    '/v1/realtime?model=__proto__',
    '/v1/chat/completions?%=%',
    '*',
    '/..%2f..%2f',
    `/${'%41'.repeat(2000)}`,
  ];
  const headers = [
    '',
    'content-type: multipart/form-data; boundary=%\r\n',
    'content-encoding: __proto__\r\n',
    'content-encoding: gzip\r\n',
    'range: bytes=99999999999999999999-\r\n',
    'idempotency-key: %\r\n',
    'authorization: Bearer\r\n',
    'x-api-key: __proto__\r\n',
    'anthropic-version: __proto__\r\n',
    'content-type: __proto__\r\n',
    'origin: http://[\r\n',
  ];
  for (const method of ['GET', 'POST', 'DELETE', 'HEAD']) {
    for (const target of targets) {
      for (const header of headers) {
        const auth = header.startsWith('authorization') ? '' : `authorization: Bearer ${testKey}\r\n`;
        const length = method === 'POST' ? 'content-length: 2\r\n' : '';
        const { status } = await exchange(
          stage.port,
          `${method} ${target} HTTP/1.1\r\nhost: x\r\n${auth}${header}connection: close\r\n${length}\r\n${length === '' ? '' : '{}'}`,
        );
        if (status === 500 || status === 0) t.comment(`${status} ${method} ${target.slice(0, 60)} ${header}`);
        if (status === 500) t.fail(`${method} ${target.slice(0, 60)} ${header}`);
      }
    }
  }
  t.strictSame(faultsOf(stage), []);
});
