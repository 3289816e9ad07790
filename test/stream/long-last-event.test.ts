import { test } from 'tap';
import { chat } from '../../src/protocols/chat/index.js';
import { imageGenerations } from '../../src/protocols/images/index.js';
import { responses } from '../../src/protocols/responses/index.js';
import type { ObservedTransform } from '../../src/stream/observe.js';
import { EventRuns } from '../../src/wire/sse.js';
import { observed } from './observed.js';

/** As a read of a socket brings it. */
const pieceBytes = 64 * 1024;
const medium = 'A'.repeat(2_000_000);
const tokens = { input_tokens: 50, output_tokens: 4160, total_tokens: 4210 };
const used = { input: 50, output: 4160, cached: 0, cacheWritten: 0, reasoning: 0 };

/** The ends in the places where they stand in the reads of a stream: the first one with the last bytes of its event. */
function pass(transform: ObservedTransform, event: string, ends: readonly string[]): void {
  const runs = new EventRuns(transform.eventBytes);
  const bytes = Buffer.from(event + (ends[0] ?? ''));
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += pieceBytes) pieces.push(bytes.subarray(at, at + pieceBytes));
  for (const piece of [...pieces, ...ends.slice(1).map((end) => Buffer.from(end))]) {
    const run = runs.push(piece);
    if (run !== null) transform.pass(run, runs.overlong);
  }
}

const eventOf = (data: { readonly type: string; readonly [name: string]: unknown }): string =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}`;
const image = eventOf({ type: 'image_generation.completed', b64_json: medium, usage: tokens });
const completed = (response: object): string => eventOf({ type: 'response.completed', response });
const drawn = completed({
  output: [{ type: 'image_generation_call', result: medium }],
  service_tier: 'priority',
  usage: tokens,
});
const chunk = `data: ${JSON.stringify({
  object: 'chat.completion.chunk',
  choices: [
    {
      index: 0,
      delta: { images: [{ image_url: { url: `data:image/png;base64,${medium}` } }] },
      finish_reason: 'stop',
    },
  ],
  usage: { prompt_tokens: 50, completion_tokens: 4160 },
})}`;

const streams = [
  { name: 'images', rules: imageGenerations, event: image, expected: used },
  { name: 'responses', rules: responses, event: drawn, expected: { ...used, tier: 'priority' } },
  { name: 'chat', rules: chat, event: chunk, expected: used },
];

/** Of a last event, as its reads bring them. */
const lineEnds: readonly (readonly string[])[] = [
  ['\n\n'],
  ['\n', '\n'],
  ['', '\n', '\n'],
  ['\r\n', '\r\n'],
  ['\r', '\n\r\n'],
  ['\r\n\r', '\n'],
  ['\n'],
  ['\r\n'],
  [''],
];

for (const { name, rules, event, expected } of streams) {
  test(`the usage of a very large last event of ${name} is read, however its blank line arrives`, async (t) => {
    for (const ends of lineEnds) {
      const transform = observed(rules);
      pass(transform, event, ends);
      t.match(transform.usageAtEnd(null), expected, JSON.stringify(ends));
      t.notOk(transform.usageAtEnd(null)?.estimated);
      const ended = observed(rules);
      pass(ended, event, ends);
      ended.end();
      t.match(ended.usageAtEnd(null), expected, `${JSON.stringify(ends)} and end`);
    }
  });
}

test('of a stream that breaks in the middle of its last event only what it began with is known', async (t) => {
  const transform = observed(responses);
  pass(transform, drawn.slice(0, -20), ['']);
  t.match(transform.usageAtEnd('upstream'), { input: 7, partial: true });
  const whole = observed(responses);
  pass(whole, drawn.slice(0, -20), ['']);
  t.match(whole.usageAtEnd(null), { input: 7, estimated: true }, 'also where it is said to have ended');
});

/** A schema may have members of any name. */
const tools = (bytes: number) => [
  {
    type: 'function',
    name: 'f',
    parameters: {
      usage: { input_tokens: 0, output_tokens: 0 },
      service_tier: 'flex',
      description: 'x'.repeat(bytes),
      properties: { service_tier: 'flex', usage: { input_tokens: 0 } },
    },
  },
];

test('the tier of a response is known on either side of what makes its last event large, wherever reads cut it', async (t) => {
  const created =
    'event: response.created\ndata: {"type":"response.created","response":{"service_tier":"X"}}\n\n';
  const expected = { ...used, tier: 'priority' };
  const standard = { ...used };
  // Where the last read begins, in steps over all of what stands behind the tools.
  for (let bytes = 2_030_000; bytes < 2_030_000 + pieceBytes; bytes += 16_001) {
    const orders = [
      { service_tier: 'priority', output: [], tools: tools(bytes), usage: tokens },
      { service_tier: 'priority', usage: tokens, output: [], tools: tools(bytes) },
      { tools: tools(bytes), service_tier: 'priority', usage: tokens },
      { usage: tokens, tools: tools(bytes), service_tier: 'priority' },
      { usage: tokens, tools: tools(bytes), service_tier: 'priority', instructions: 'y'.repeat(500_000) },
    ];
    for (const [index, order] of orders.entries()) {
      const transform = observed(responses);
      pass(transform, completed(order), ['\n', '\n']);
      t.strictSame(transform.usageAtEnd(null), expected, `order ${index} with ${bytes}`);
    }
    for (const order of orders) {
      const transform = observed(responses);
      transform.pass(Buffer.from(created.replace('X', 'priority')));
      pass(transform, completed({ ...order, service_tier: 'default' }), ['\n\n']);
      t.strictSame(transform.usageAtEnd(null), standard, 'the last one that is named counts');
    }
    const unsaid = observed(responses);
    unsaid.pass(Buffer.from(created.replace('X', 'priority')));
    pass(unsaid, completed({ tools: tools(bytes), usage: tokens }), ['\n\n']);
    t.strictSame(unsaid.usageAtEnd(null), expected, 'tools say nothing of it');
  }
});

test('no place near the end of a very large response decides what it costs by being the beginning of a read', async (t) => {
  const last = completed({ tools: tools(1_200_000), service_tier: 'priority', usage: tokens });
  const expected = { ...used, tier: 'priority' };
  for (let behind = 1; behind < 420; behind += 3) {
    const transform = observed(responses);
    const cut = last.length - behind;
    const runs = new EventRuns(transform.eventBytes);
    for (const piece of [last.slice(0, 1_100_000), last.slice(1_100_000, cut), last.slice(cut), '\n\n']) {
      const run = runs.push(Buffer.from(piece));
      if (run !== null) transform.pass(run, runs.overlong);
    }
    t.strictSame(transform.usageAtEnd(null), expected, `cut ${behind} bytes from its end`);
  }
});
