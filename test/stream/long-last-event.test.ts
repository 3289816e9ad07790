import { test } from 'tap';
import { chat } from '../../src/protocols/chat/index.js';
import { generateContent } from '../../src/protocols/generate-content/index.js';
import { imageGenerations } from '../../src/protocols/images/index.js';
import { messages } from '../../src/protocols/messages/index.js';
import { responses } from '../../src/protocols/responses/index.js';
import type { ObservedTransform } from '../../src/stream/observe.js';
import { EventRuns } from '../../src/wire/sse.js';
import { places } from '../support/seed.js';
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
const block = `data: ${JSON.stringify({
  candidates: [{ content: { parts: [{ inlineData: { data: medium } }] }, finishReason: 'STOP' }],
  usageMetadata: { promptTokenCount: 50, candidatesTokenCount: 4160 },
})}`;

const streams = [
  { name: 'images', rules: imageGenerations, event: image, expected: used },
  { name: 'responses', rules: responses, event: drawn, expected: { ...used, tier: 'priority' } },
  { name: 'chat', rules: chat, event: chunk, expected: used },
  { name: 'generateContent', rules: generateContent, event: block, expected: used },
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
      t.equal(transform.end().error, null);
      const ended = observed(rules);
      pass(ended, event, ends);
      ended.end();
      t.match(ended.usageAtEnd(null), expected, `${JSON.stringify(ends)} and end`);
    }
  });
}

test('the usage of a very large last event is read in the middle of it, and without an event line', async (t) => {
  const response = {
    output: [{ type: 'image_generation_call', result: medium }],
    service_tier: 'priority',
    usage: tokens,
    metadata: Object.fromEntries(Array.from({ length: 16 }, (_, at) => [`m${at}`, 'x'.repeat(512)])),
    output_later: [{ type: 'image_generation_call', result: medium }],
  };
  const named = completed(response);
  for (const event of [named, named.slice(named.indexOf('data:'))]) {
    const transform = observed(responses);
    pass(transform, event, ['\n', '\n']);
    t.equal(transform.isComplete, true);
    t.equal(transform.end().error, null);
    t.strictSame(transform.usageAtEnd(null), { ...used, tier: 'priority' });
    const failed = observed(responses);
    const told = { ...response, error: { code: 'server_error', message: 'No more images.' } };
    pass(
      failed,
      event
        .replaceAll('completed', 'failed')
        .replace('"output"', `"error":${JSON.stringify(told.error)},"output"`),
      ['\n\n'],
    );
    t.equal(failed.isComplete, false);
    t.match(failed.passedError, { message: /No more images/ });
    t.strictSame(failed.usageAtEnd(null), { ...used, tier: 'priority' });
  }
});

test('a stream is not complete in the middle of its last event', async (t) => {
  for (const event of [drawn, image]) {
    const transform = observed(event === drawn ? responses : imageGenerations);
    pass(transform, event.slice(0, -20), ['']);
    t.equal(transform.isComplete, false);
    t.ok(transform.end().error);
  }
});

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
  for (const bytes of places(2_030_000, 2_030_000 + pieceBytes + 1, 16_001)) {
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
  for (const behind of places(1, 420, 3)) {
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

/** As Perplexity streams: the usage so far stands before the sources and the text in each event. */
const grown = (output: number, reason: string | null): string =>
  `data: ${JSON.stringify({
    usage: { prompt_tokens: 14_000, completion_tokens: output, num_search_queries: 3 },
    search_results: new Array(20).fill({ title: 'A page', url: 'https://example.org/a-page/of-many-words' }),
    object: 'chat.completion.chunk',
    choices: [
      {
        index: 0,
        finish_reason: reason,
        message: { role: 'assistant', content: 'four'.repeat(output) },
        delta: { role: 'assistant', content: 'four' },
      },
    ],
  })}\r\n\r\n`;

test('a usage that much of its event follows is read, however the events of its stream arrive', async (t) => {
  const events = [grown(28, null), grown(56, null), grown(84, 'stop')];
  const mark = 'data: [DONE]\r\n\r\n';
  const expected = { input: 14_000, output: 84, cached: 0, cacheWritten: 0, reasoning: 0, searches: 3 };
  for (const ends of [[mark], [': ping\n\n', mark], [], ['\n']]) {
    const transform = observed(chat);
    for (const each of [...events, ...ends]) transform.pass(Buffer.from(each));
    t.equal(transform.end().error, null, JSON.stringify(ends));
    t.strictSame(transform.usageAtEnd(null), expected);
  }
  const apart = observed(chat);
  const cited = {
    choices: [],
    usage: { prompt_tokens: 9000, completion_tokens: 300 },
    citations: ['x'.repeat(2700)],
  };
  apart.pass(Buffer.from('data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'));
  apart.pass(Buffer.from(`data: ${JSON.stringify(cited)}\n\n`));
  apart.pass(Buffer.from(mark));
  t.match(apart.usageAtEnd(null), { input: 9000, output: 300 });
  t.notOk(apart.usageAtEnd(null)?.estimated);
});

test('a stream that breaks off behind such a usage has used it, and one that goes on without any is estimated', async (t) => {
  const broken = observed(chat);
  for (const each of [grown(28, null), grown(56, null)]) broken.pass(Buffer.from(each));
  t.ok(broken.end().error);
  t.match(broken.usageAtEnd('upstream'), { input: 14_000, searches: 3, partial: true });
  const silent = observed(chat);
  silent.pass(Buffer.from(grown(1, null)));
  const piece = 'data: {"choices":[{"index":0,"delta":{"content":"some more words"}}]}\n\n';
  for (let at = 0; at < 100; at++) silent.pass(Buffer.from(piece));
  silent.pass(Buffer.from('data: [DONE]\n\n'));
  t.match(silent.usageAtEnd(null), { input: 7, estimated: true });
});

test('a stream is not whole whose last long event ends one of its answers, and no event the other', async (t) => {
  const transform = observed(chat);
  transform.pass(Buffer.from(grown(28, 'stop')));
  transform.pass(
    Buffer.from('data: {"choices":[{"index":1,"delta":{"content":"more"},"finish_reason":null}]}\n\n'),
  );
  t.ok(transform.end().error);
});

test('a run of short events is not searched for a usage before its stream ends, one with a long event is', (t) => {
  let reads = 0;
  const judgeEnd: typeof chat.judgeEnd = (tail, facts) => {
    reads++;
    return chat.judgeEnd(tail, facts);
  };
  const transform = observed({ ...chat, judgeEnd });
  const piece = 'data: {"choices":[{"index":0,"delta":{"content":"some more words"}}]}\n\n';
  transform.pass(Buffer.from(piece.repeat(1000)));
  t.equal(reads, 0);
  transform.pass(Buffer.from(`${piece.repeat(10)}${grown(28, null)}: ping\n\n`));
  t.equal(reads, 1);
  t.match(transform.usageAtEnd('upstream'), { input: 14_000, partial: true });
  t.end();
});

test('a usage that the model writes into a whole answer that breaks off is not taken for its own', (t) => {
  const told = { usage: { input_tokens: 0, output_tokens: 1 } };
  const content = [
    { type: 'tool_use', id: 't', name: 'f', input: told },
    { type: 'text', text: 'word '.repeat(80_000) },
  ];
  const answer = JSON.stringify({ id: 'm', type: 'message', role: 'assistant', model: 'x', content });
  const ofMessages = observed(messages);
  const args = { usageMetadata: { promptTokenCount: 0, candidatesTokenCount: 1 } };
  const parts = [{ functionCall: { name: 'f', args } }, { text: 'word '.repeat(80_000) }];
  const candidates = JSON.stringify({ candidates: [{ content: { role: 'model', parts } }] });
  const ofGenerateContent = observed(generateContent);
  for (const [transform, text] of [
    [ofMessages, answer],
    [ofGenerateContent, candidates],
  ] as const) {
    for (let at = 0; at < text.length - 100; at += pieceBytes)
      transform.note(Buffer.from(text.slice(at, Math.min(at + pieceBytes, text.length - 100))));
    const usage = transform.usageAtEnd('upstream');
    t.match(usage, { input: 7, partial: true });
    t.ok((usage?.output ?? 0) > 50_000, `${usage?.output}`);
  }
  t.end();
});

test('a usage at the head of a whole answer that passes in pieces is read', async (t) => {
  const told = {
    usage: { prompt_tokens: 14_000, completion_tokens: 3000 },
    citations: ['x'.repeat(300_000)],
  };
  const answer = Buffer.from(
    JSON.stringify({ ...told, choices: [{ index: 0, message: { content: 'Hello' } }] }),
  );
  const transform = observed(chat);
  for (let at = 0; at < answer.length; at += pieceBytes) transform.note(answer.subarray(at, at + pieceBytes));
  t.match(transform.usageAtEnd(null), { input: 14_000, output: 3000 });
  t.notOk(transform.usageAtEnd(null)?.estimated);
  const listless = Buffer.from(JSON.stringify({ usage: told.usage, text: 'x'.repeat(300_000) }));
  const whole = observed(chat);
  for (let at = 0; at < listless.length; at += pieceBytes) whole.note(listless.subarray(at, at + pieceBytes));
  t.match(whole.usageAtEnd(null), { input: 14_000, output: 3000 }, 'of an answer without lists, too');
  const last = { ...told, choices: [], system_fingerprint: 'x'.repeat(1000), usage_later: 0 };
  const both = JSON.stringify(last).replace(
    'usage_later":0',
    'usage":{"prompt_tokens":1,"completion_tokens":2}',
  );
  const later = observed(chat);
  for (const piece of [both.slice(0, 100_000), both.slice(100_000)]) later.note(Buffer.from(piece));
  t.match(later.usageAtEnd(null), { input: 1, output: 2 }, 'the last one counts');
});

test('a very large last event that repeats the answer is no further output, in whatever parts it passes', async (t) => {
  const said = eventOf({ type: 'response.output_text.delta', delta: 'hello ' });
  const repeated = completed({ instructions: 'Answer briefly. '.repeat(150_000), output: [] });
  for (const ends of lineEnds) {
    const transform = observed(responses);
    pass(transform, `${said}\n\n`.repeat(20) + repeated, ends);
    const { output = 0, estimated } = transform.usageAtEnd(null) ?? {};
    t.ok(output >= 30 && output <= 40 && estimated === true, `${output} ${JSON.stringify(ends)}`);
  }
});

test('the usage of a very large last event is read, wherever a list of many items stands', (t) => {
  const output = new Array(40_000).fill({ id: 'msg_1', type: 'message', content: [] });
  const metadata = Object.fromEntries(Array.from({ length: 16 }, (_, at) => [`m${at}`, 'x'.repeat(500)]));
  for (const response of [
    { usage: tokens, output },
    { output, usage: tokens, metadata },
  ]) {
    const transform = observed(responses);
    pass(transform, completed(response), ['\n\n']);
    t.strictSame(transform.usageAtEnd(null), used);
  }
  t.end();
});

test('an image that only a very large last event shows is output where no usage is reported', (t) => {
  const said = eventOf({ type: 'response.output_text.delta', delta: 'hello ' });
  const shown = completed({ output: [{ type: 'image_generation_call', result: medium }] });
  for (const [event, brokenBy] of [
    [shown, null],
    [`${said}\n\n${shown}`, null],
    [`${said}\n\n${shown.slice(0, -100_000)}`, 'client'],
  ] as const) {
    const transform = observed(responses);
    pass(transform, event, [brokenBy === null ? '\n\n' : '']);
    const { output = 0 } = transform.usageAtEnd(brokenBy) ?? {};
    t.ok(output >= 1000 && output <= 2000, `${output}`);
  }
  t.end();
});
