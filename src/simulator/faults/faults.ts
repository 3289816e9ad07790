import { once } from 'node:events';
import { createGzip, constants as zlib } from 'node:zlib';
import type { Reply, Step } from '../http/reply.js';
import { askedForStatus } from '../http/request-error.js';
import { type Directive, directiveError, directiveOption, directiveValue } from './directives.js';

const text = 'Simulated answer.';

const message = {
  id: 'msg_simulated',
  type: 'message',
  role: 'assistant',
  model: 'sim-text',
  content: [],
  stop_reason: null,
  stop_sequence: null,
  usage: { input_tokens: 1, output_tokens: 1 },
};
const messageEvents = [
  { type: 'message_start', message },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
  { type: 'content_block_stop', index: 0 },
  {
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { output_tokens: 4 },
  },
  { type: 'message_stop' },
];

const completion = { id: 'chatcmpl-simulated', created: 1_700_000_000, model: 'sim-text' };
const chunk = (delta: object, finish: string | null): string =>
  JSON.stringify({
    ...completion,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
  });

/** A fixed answer of an upstream of each protocol. */
const answers = {
  messages: {
    events: messageEvents.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`),
    body: JSON.stringify({ ...message, content: [{ type: 'text', text }], stop_reason: 'end_turn' }),
  },
  chat: {
    events: [
      chunk({ role: 'assistant', content: '' }, null),
      chunk({ content: text }, null),
      chunk({}, 'stop'),
      '[DONE]',
    ].map((data) => `data: ${data}\n\n`),
    body: JSON.stringify({
      ...completion,
      object: 'chat.completion',
      choices: [
        { index: 0, message: { role: 'assistant', content: text }, logprobs: null, finish_reason: 'stop' },
      ],
      usage: { prompt_tokens: 1, completion_tokens: 5, total_tokens: 6 },
    }),
  },
};

/** The answer of an upstream of another protocol. */
function foreign(reply: Reply): Reply {
  const { events, body } = answers[reply.answerFormat.foreign];
  return reply.stream
    ? { ...reply, length: null, steps: events.map((bytes): Step => ({ kind: 'data', bytes, tokens: 1 })) }
    : { ...reply, length: Buffer.byteLength(body), steps: [{ kind: 'data', bytes: body, tokens: 0 }] };
}

/*
 * Directives. They stand at the start of a request's last user text, any number of them, as `[[fault:NAME=VALUE option=…]]
 * text`, or in the header `x-simulator-fault: NAME=VALUE option=…; NAME …`. `after=N` counts events of a stream; for a JSON
 * answer, any N above zero means half of the body. An unknown directive is answered with 400.
 * The second part of the table is about the content of answers, where `times` has no effect. Turns of a realtime session have
 * their own table, in `realtime/faults.ts`.
 *
 * | directive                         | what the client gets                                                        |
 * |-----------------------------------|-----------------------------------------------------------------------------|
 * | any fault, with `times=N`         | the fault for the first N requests with exactly this directive, then none   |
 * | `latency=MS`                      | the head after MS milliseconds instead of the usual delay                   |
 * | `rate=N`                          | N tokens a second in streams; 0 for no pacing                               |
 * | `status=N retry-after=S html`     | an error with this status; with `html` an HTML page, as from a proxy        |
 * | `reset after=N`                   | RST; before the head without `after`                                        |
 * | `hang after=N`                    | silence until the client disconnects; before the head without `after`       |
 * | `close after=N`                   | a well-framed end after N events (1), without `[DONE]`; JSON: half the body |
 * | `truncate after=N`                | FIN inside a chunk after N events (1)                                       |
 * | `silent=SECONDS after=N`          | a pause after N events (0), then the rest                                   |
 * | `error-event after=N`             | an error inside the 200 after N events (0), then the end; in a stream of    |
 * |                                   | responses `error-event=failed` gives `response.failed` instead of `error`   |
 * | `bad-head=status-line`            | an invalid status line; also `header`, `lengths` (two that differ), `huge`  |
 * | `short-body`                      | `content-length` 100 too high, then FIN                                     |
 * | `until-close`                     | a body without framing that ends with the connection                        |
 * | `garbage=junk`                    | bytes after the body; `garbage=response`: another whole response            |
 * | `drop`                            | a whole answer that allows reuse, then FIN                                  |
 * | `stale`                           | a whole answer; the connection's next request is reset                      |
 * | `early-hints`                     | a 103 before the answer                                                     |
 * | `gzip`                            | the answer compressed, whatever the request accepts                         |
 * | `wrong-protocol`                  | an answer of the messages protocol; for messages: one of chat               |
 * | `slow-bytes=MS`                   | each byte in its own write, MS milliseconds (0) apart                       |
 * | `flood megabytes=N event-bytes=B` | a stream of N MB (1) in events of B bytes (16384), unpaced; JSON: N MB of   |
 * |                                   | spaces before the body                                                      |
 * |-----------------------------------|-----------------------------------------------------------------------------|
 * | `long=N`                          | a text answer extended to N tokens                                          |
 * | `args-at-once`                    | the whole input of a call in one delta; responses: only in the done event   |
 * | `interleave`                      | chat: the deltas of parallel calls are interleaved                          |
 * | `zero-args`                       | calls with an empty input: `""`, no delta, or no `args`                     |
 * | `redacted`                        | messages: a redacted thinking block before the text                         |
 * | `refuse`                          | a refusal; generateContent: `refuse=prompt` blocks the prompt               |
 * | `finish=WORD`                     | exactly this word as the finish reason                                      |
 */

type Fault = (reply: Reply, directive: Directive) => Reply | Promise<Reply>;

const faults: ReadonlyMap<string, Fault> = new Map<string, Fault>([
  ['latency', (reply, asked) => ({ ...reply, latencyMs: directiveValue(asked, 'latency', 0) })],
  ['rate', (reply, asked) => ({ ...reply, tokensPerSecond: directiveValue(asked, 'rate', 0) })],
  ['status', status],
  ['reset', (reply, asked) => cutOrBefore(reply, asked, { kind: 'reset' })],
  ['hang', (reply, asked) => cutOrBefore(reply, asked, { kind: 'hang' })],
  ['close', close],
  ['truncate', (reply, asked) => withoutLastChunk(reply, first(reply, asked, 1))],
  ['silent', silent],
  ['error-event', errorEvent],
  ['bad-head', (reply, asked) => instead(reply, badHead(asked.value))],
  ['short-body', shortBody],
  ['until-close', (reply) => ({ ...reply, length: null, framed: false })],
  ['garbage', garbage],
  ['drop', (reply) => ({ ...reply, after: [...reply.after, { kind: 'disconnect' }] })],
  ['stale', (reply) => ({ ...reply, after: [...reply.after, { kind: 'spoil' }] })],
  ['early-hints', (reply) => ({ ...reply, before: [...reply.before, earlyHints] })],
  ['gzip', compressed],
  ['wrong-protocol', foreign],
  ['slow-bytes', (reply, asked) => singleBytes(reply, directiveValue(asked, 'slow-bytes', 0))],
  ['flood', flood],
  ...['long', 'args-at-once', 'interleave', 'zero-args', 'redacted', 'refuse', 'finish'].map(
    (name): [string, Fault] => [name, (reply) => reply],
  ),
]);

const earlyHints: Step = {
  kind: 'raw',
  bytes: 'HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload\r\n\r\n',
};

/**
 * Applies directives to an answer, one by one.
 * @throws RequestError for an unknown directive or an invalid value.
 */
export async function applyFaults(reply: Reply, directives: readonly Directive[]): Promise<Reply> {
  let faulty = reply;
  for (const directive of directives) {
    const fault = faults.get(directive.name);
    if (fault === undefined) {
      throw directiveError(
        `The simulator knows no directive "${directive.name}". Known are: ${[...faults.keys()].join(', ')}.`,
      );
    }
    faulty = await fault(faulty, directive);
  }
  return faulty;
}

function status(reply: Reply, asked: Directive): Reply {
  const code = directiveValue(asked, 'status', 500);
  if (!Number.isInteger(code) || code < 200 || code > 599) {
    throw directiveError(`"${asked.source}" asks for a status that an answer cannot have.`);
  }
  const retryAfter = asked.options.get('retry-after');
  const html = asked.options.has('html');
  return {
    ...wholeBody(reply, html ? plainPage(code) : reply.answerFormat.errorBody(askedForStatus(code))),
    status: code,
    headers: {
      'content-type': html ? 'text/html' : 'application/json',
      ...(retryAfter === undefined ? {} : { 'retry-after': retryAfter }),
    },
  };
}

function wholeBody(reply: Reply, body: string): Reply {
  const steps: readonly Step[] = [{ kind: 'data', bytes: body, tokens: 0 }];
  return { ...reply, stream: false, length: Buffer.byteLength(body), steps };
}

function instead(reply: Reply, bytes: string): Reply {
  return { ...reply, before: [{ kind: 'raw', bytes }, { kind: 'disconnect' }] };
}

function cutOrBefore(reply: Reply, asked: Directive, end: Step): Reply {
  return asked.options.has('after')
    ? { ...reply, steps: followed(first(reply, asked, 0), end) }
    : { ...reply, before: [...reply.before, end] };
}

function close(reply: Reply, asked: Directive): Reply {
  const steps = first(reply, asked, 1);
  return { ...reply, steps: reply.length === null ? steps : followed(steps, { kind: 'disconnect' }) };
}

function silent(reply: Reply, asked: Directive): Reply {
  const pause: Step = { kind: 'wait', ms: directiveValue(asked, 'seconds', 1) * 1000 };
  const after = directiveOption(asked, 'after', 0);
  async function* steps(): AsyncGenerator<Step> {
    let index = 0;
    for await (const step of divisible(reply)) {
      if (index === after) {
        yield pause;
      }
      index += 1;
      yield step;
    }
  }
  return { ...reply, steps: steps() };
}

function errorEvent(reply: Reply, asked: Directive): Reply {
  if (!reply.stream) {
    return wholeBody(reply, reply.answerFormat.errorBody(askedForStatus(500)));
  }
  async function* steps(): AsyncGenerator<Step> {
    yield* first(reply, asked, 0);
    yield { kind: 'data', bytes: reply.answerFormat.errorEvent(asked.value), tokens: 1 };
  }
  return { ...reply, length: null, steps: steps() };
}

async function shortBody(reply: Reply): Promise<Reply> {
  const body = await textOf(reply.steps);
  const steps: readonly Step[] = [{ kind: 'data', bytes: body, tokens: 0 }, { kind: 'disconnect' }];
  return { ...reply, length: body.length + 100, steps };
}

function garbage(reply: Reply, asked: Directive): Reply {
  const bytes =
    asked.value === 'response'
      ? 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 17\r\n\r\n{"poisoned":true}'
      : '\0\x01garbage\r\n\r\n';
  return { ...reply, after: [...reply.after, { kind: 'raw', bytes }] };
}

function flood(reply: Reply, asked: Directive): Reply {
  return flooded(reply, {
    bytes: Math.round(directiveValue(asked, 'megabytes', 1) * 1_000_000),
    eventBytes: Math.max(1, directiveOption(asked, 'event-bytes', 16_384)),
  });
}

/** The first steps of an answer, up to the number in `after`. */
async function* first(reply: Reply, asked: Directive, fallback: number): AsyncGenerator<Step> {
  const limit = directiveOption(asked, 'after', fallback);
  let index = 0;
  if (limit === 0) {
    return;
  }
  for await (const step of divisible(reply)) {
    yield step;
    index += 1;
    if (index === (reply.stream ? limit : 1)) {
      return;
    }
  }
}

/** The steps of an answer in a form that can be cut: events unchanged, a body as its two halves. */
async function* divisible(reply: Reply): AsyncGenerator<Step> {
  if (reply.stream) {
    yield* reply.steps;
    return;
  }
  const body = await textOf(reply.steps);
  const half = body.length >> 1;
  yield { kind: 'data', bytes: body.subarray(0, half), tokens: 0 };
  yield { kind: 'data', bytes: body.subarray(half), tokens: 0 };
}

async function* followed(steps: AsyncIterable<Step>, last: Step): AsyncGenerator<Step> {
  yield* steps;
  yield last;
}

/** The bytes of all data steps. */
async function textOf(steps: Reply['steps']): Promise<Buffer> {
  const found: Buffer[] = [];
  for await (const step of steps) {
    if (step.kind === 'data') {
      found.push(Buffer.from(step.bytes));
    }
  }
  return Buffer.concat(found);
}

/** Heads that violate RFC 9112, by the name of the violation. */
function badHead(what: string): string {
  switch (what) {
    case 'header':
      return 'HTTP/1.1 200 OK\r\ncontent-type application/json\r\ncontent-length: 2\r\n\r\n{}';
    case 'lengths':
      return 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{} ';
    case 'huge':
      return `HTTP/1.1 200 OK\r\nx-huge: ${'a'.repeat(1_000_000)}\r\ncontent-length: 2\r\n\r\n{}`;
    default:
      return 'HTTP/1.1 two hundred\r\ncontent-length: 2\r\n\r\n{}';
  }
}

/** An error page as sent by a proxy in front of the upstream. */
function plainPage(status: number): string {
  return `<html><head><title>${status}</title></head><body><h1>${status}</h1><p>Simulated page.</p></body></html>\n`;
}

/** The given steps as chunks, then a chunk that announces more than it holds, then FIN. */
function withoutLastChunk(reply: Reply, steps: AsyncIterable<Step>): Reply {
  async function* cut(): AsyncGenerator<Step> {
    yield* steps;
    yield { kind: 'raw', bytes: '40\r\ndata: {"cut' };
    yield { kind: 'disconnect' };
  }
  return {
    ...reply,
    length: null,
    headers: { ...reply.headers, 'transfer-encoding': 'chunked' },
    steps: cut(),
  };
}

/** The answer with `content-encoding: gzip`, flushed event by event. */
function compressed(reply: Reply): Reply {
  async function* steps(): AsyncGenerator<Step> {
    const gzip = createGzip();
    const ended = once(gzip, 'end');
    let ready: Buffer[] = [];
    gzip.on('data', (chunk: Buffer) => ready.push(chunk));
    const taken = (tokens: number): Step => {
      const bytes = Buffer.concat(ready);
      ready = [];
      return { kind: 'data', bytes, tokens };
    };
    for await (const step of reply.steps) {
      if (step.kind !== 'data') {
        yield step;
        continue;
      }
      gzip.write(step.bytes);
      await new Promise<void>((resolve) => gzip.flush(zlib.Z_SYNC_FLUSH, resolve));
      // Flushed data is emitted in the next turn at the latest.
      await new Promise((resolve) => setImmediate(resolve));
      yield taken(step.tokens);
    }
    gzip.end();
    await ended;
    yield taken(0);
  }
  return {
    ...reply,
    length: null,
    headers: { ...reply.headers, 'content-encoding': 'gzip' },
    steps: steps(),
  };
}

/** Every byte in its own step, a turn of the event loop or some milliseconds apart. */
function singleBytes(reply: Reply, ms: number): Reply {
  async function* steps(): AsyncGenerator<Step> {
    for await (const step of reply.steps) {
      if (step.kind !== 'data') {
        yield step;
        continue;
      }
      const bytes = Buffer.from(step.bytes);
      for (let at = 0; at < bytes.length; at += 1) {
        yield { kind: 'data', bytes: bytes.subarray(at, at + 1), tokens: at === 0 ? step.tokens : 0 };
        yield { kind: 'wait', ms };
      }
    }
  }
  return { ...reply, steps: steps() };
}

/** Adds this many bytes of content before the end of the answer, as fast as they are read. */
function flooded(reply: Reply, size: { readonly bytes: number; readonly eventBytes: number }): Reply {
  const event = Buffer.from(
    reply.stream ? reply.answerFormat.contentEvent('x'.repeat(size.eventBytes)) : ' '.repeat(size.eventBytes),
  );
  const count = Math.ceil(size.bytes / event.length);
  const padding: Step = { kind: 'data', bytes: event, tokens: 0 };
  async function* steps(): AsyncGenerator<Step> {
    // A stream starts with its own first events; a body is preceded by the padding.
    let ahead = reply.stream ? reply.answerFormat.eventsBeforeContent : 0;
    for await (const step of reply.steps) {
      for (let sent = 0; ahead === 0 && sent < count; sent += 1) {
        yield padding;
      }
      ahead -= 1;
      yield step;
    }
  }
  const length = reply.length === null ? null : reply.length + count * event.length;
  return { ...reply, length, tokensPerSecond: 0, steps: steps() };
}
