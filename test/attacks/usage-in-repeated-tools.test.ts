import { test } from 'tap';
import { responses } from '../../src/protocols/responses/index.js';
import type { ObservedTransform } from '../../src/stream/observe.js';
import { EventRuns } from '../../src/wire/sse.js';
import { observed } from '../stream/observed.js';

/** As a read of a socket brings it. */
const pieceBytes = 64 * 1024;
const usage = { input_tokens: 1000, output_tokens: 500, total_tokens: 1500 };
const free = { input_tokens: 0, output_tokens: 0, total_tokens: 0 };
const exact = { input: 1000, output: 500, cached: 0, cacheWritten: 0, reasoning: 0 };

/** The tools of a request, which a response repeats: a schema may have members of any name. */
const toolsOf = (bytes: number, filling = 'x') => ({
  tools: [
    {
      type: 'function',
      name: 'f',
      parameters: {
        usage: free,
        service_tier: 'flex',
        description: filling.repeat(bytes),
        properties: { usage: free },
      },
    },
  ],
});

interface Ended {
  readonly status: string;
  readonly [member: string]: unknown;
}

const eventOf = (response: Ended): Buffer =>
  Buffer.from(
    `event: response.${response.status}\ndata: ${JSON.stringify({ type: `response.${response.status}`, response })}\n\n`,
  );

function pass(transform: ObservedTransform, bytes: Buffer): void {
  const runs = new EventRuns(transform.eventBytes);
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const run = runs.push(bytes.subarray(at, at + pieceBytes));
    if (run !== null) transform.pass(run, runs.overlong);
  }
}

const text =
  'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"Hello there"}\n\n';

// From the second size on an event is passed on in parts.
for (const bytes of [1000, 1_100_000, 3_000_000]) {
  test(`a response costs what its upstream says, whatever its tools of ${bytes} bytes say`, async (t) => {
    const orders: readonly Ended[] = [
      { status: 'completed', ...toolsOf(bytes), usage },
      { status: 'completed', ...toolsOf(bytes), usage, metadata: { a: 'y'.repeat(8000) } },
      { status: 'completed', usage, ...toolsOf(bytes) },
      { status: 'completed', usage, ...toolsOf(bytes, '\\') },
      { id: 'r', status: 'completed', usage, ...toolsOf(bytes, '\\') },
      { status: 'completed', usage, metadata: { a: '"}]\\'.repeat(bytes / 5) } },
      { status: 'incomplete', error: null, ...toolsOf(bytes), usage },
    ];
    for (const response of orders) {
      const transform = observed(responses);
      pass(transform, Buffer.concat([Buffer.from(text), eventOf(response)]));
      t.ok(transform.isComplete);
      t.equal(transform.end().error, null);
      t.strictSame(transform.usageAtEnd(null), exact);
    }
    const failed = observed(responses);
    const error = { code: 'server_error', message: 'It broke.' };
    pass(
      failed,
      Buffer.concat([Buffer.from(text), eventOf({ status: 'failed', error, ...toolsOf(bytes), usage })]),
    );
    t.notOk(failed.isComplete);
    t.ok(failed.passedError);
    t.strictSame(failed.usageAtEnd(null), exact);
  });
}

test('what a response repeats is not its usage where its stream breaks off there', async (t) => {
  const transform = observed(responses);
  const last = eventOf({ status: 'completed', ...toolsOf(1_200_000), usage });
  pass(transform, Buffer.concat([Buffer.from(text), last.subarray(0, last.lastIndexOf('}]}', -200))]));
  t.match(transform.usageAtEnd('client'), { input: 7, partial: true });
  t.not(transform.usageAtEnd('client')?.output, 0);
});
