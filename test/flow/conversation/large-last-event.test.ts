import { type Test, test } from 'tap';
import { hashKey } from '../../../src/keys/secret.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { askResponse, keptIn } from '../../support/conversations.js';
import { costOf } from '../../support/cost.js';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, testKey } from '../../support/gateway.js';
import { postJson } from '../../support/post-json.js';
import { errorAnswer, type Routed, startRouted } from '../../support/routed.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import {
  type Answer,
  chunk,
  jsonAnswer,
  lastChunk,
  type RawRequest,
  streamHead,
} from '../../support/upstream.js';

const otherKey = 'sk-other';
const otherAsks = { key: otherKey };
const usage = {
  input_tokens: 30,
  input_tokens_details: { cached_tokens: 10 },
  output_tokens: 20,
  total_tokens: 50,
};
/** In nano-dollars: 20 tokens of input, 10 that were cached, 20 of output. */
const cost = 20 * 1_000_000 + 10 * 100_000 + 20 * 2_000_000;

/** As OpenAI orders the members of a response, and with what stands behind the usage as long as it may be. */
function response(imageBytes: number): JsonObject {
  const image = { type: 'image_generation_call', id: 'ig_1', status: 'completed' };
  const message = { type: 'message', id: 'msg_1', role: 'assistant', content: [] };
  return {
    id: 'resp_1',
    object: 'response',
    status: 'completed',
    output: [{ ...image, result: 'A'.repeat(imageBytes) }, message],
    tools: [{ type: 'image_generation', quality: 'low' }],
    usage,
    metadata: Object.fromEntries(Array.from({ length: 16 }, (_, at) => [`m${at}`, 'x'.repeat(500)])),
  };
}

type Written = (type: string, more: object) => string;
const named: Written = (type, more) => `event: ${type}\n${unnamed(type, more)}`;
const unnamed: Written = (type, more) => `data: ${JSON.stringify({ type, ...more })}\n\n`;

function streamOf(imageBytes: number, written: Written): string {
  const whole = response(imageBytes);
  const [item] = whole.output as JsonObject[];
  return [
    written('response.created', { response: { ...whole, status: 'in_progress', output: [], usage: null } }),
    written('response.image_generation_call.partial_image', {
      item_id: 'ig_1',
      partial_image_b64: 'A'.repeat(imageBytes),
    }),
    written('response.output_item.done', { item }),
    written('response.completed', { response: whole }),
  ].join('');
}

/** Two targets of one model, which two keys may call. */
function stage(t: Test, answer: Answer): Promise<Routed> {
  const targets = ['u0', 'u1'].map((upstream) => ({ upstream, model: 'm', responses: true }));
  const price = { input: 1000, cached: 100, output: 2000 };
  return startRouted(t, [answer, answer], {
    config: {
      ...keptIn(temporaryFolder(t)),
      models: { m: { protocols: ['responses'], targets, price } },
      keys: [testKey, otherKey].map((key) => ({ id: key, hash: hashKey(key), groups: ['default'] })),
    },
  });
}

/** The first request is answered by a stream, the later ones by an error. */
function streamFirst(stream: string): Answer {
  let isMade = false;
  return () => {
    if (isMade) return errorAnswer(429);
    isMade = true;
    return streamHead + chunk(stream) + lastChunk;
  };
}

async function draw({ url }: RunningGateway): Promise<string> {
  const answer = await postJson(`${url}/v1/responses`, { model: 'm', input: 'draw', stream: true });
  return answer.text();
}

const mb = 1_000_000;

for (const [name, imageBytes, written] of [
  ['3 MB', 3 * mb, named],
  ['20 MB', 20 * mb, named],
  ['3 MB and no name of its own', 3 * mb, unnamed],
] as const) {
  test(`a stream whose last event has an image of ${name} belongs to its key and its target`, async (t) => {
    const all = streamOf(imageBytes, written);
    const { gateway, ...routed } = await stage(t, streamFirst(all));
    t.ok((await draw(gateway)) === all, 'every byte passes');
    t.match(await gateway.line(({ msg }) => msg === 'request'), { outcome: 'complete' });
    t.equal(costOf(gateway), cost);
    const made = routed.counts();
    t.match(await askResponse(gateway, { input: 'more', previous_response_id: 'resp_1' }, otherAsks), {
      status: 400,
      body: { error: { code: 'previous_response_not_found' } },
    });
    for (const id of ['ig_1', 'msg_1']) {
      const input = [{ type: 'item_reference', id }];
      t.equal((await askResponse(gateway, { input }, otherAsks)).status, 404, id);
    }
    t.strictSame(routed.counts(), made, 'no upstream is asked for what is of another key');
    t.equal((await askResponse(gateway, { input: 'x', previous_response_id: 'resp_1' })).status, 429);
    t.strictSame(
      routed.counts().map((count) => count > 0),
      made.map((count) => count > 0),
      'its own key is sent to the target that made it, and to no other',
    );
  });
}

test('a stream that breaks off in its large last event is not complete', async (t) => {
  const all = streamOf(3 * mb, named);
  const { gateway } = await stage(t, ({ socket }) => {
    socket.end(streamHead + chunk(all.slice(0, -1000)));
  });
  const passed = await draw(gateway);
  t.ok(passed.startsWith(`${all.slice(0, -1000)}\n\n`));
  t.match(passed.slice(all.length - 1000), /event: error\ndata: .*upstream/);
  t.match(await gateway.line(({ msg }) => msg === 'request'), { outcome: 'upstream_error' });
});

test('a background response shown by a large last event is charged, and its items belong to its key', async (t) => {
  const whole = { ...response(3 * mb), background: true };
  const completed = named('response.completed', { response: whole });
  const answer = ({ head }: RawRequest): string => {
    if (head.startsWith('POST'))
      return jsonAnswer(200, '{"id":"resp_1","status":"queued","background":true}');
    return head.includes('stream=true')
      ? streamHead + chunk(completed) + lastChunk
      : jsonAnswer(200, '{"id":"resp_1","status":"in_progress","background":true}');
  };
  const { gateway } = await stage(t, answer);
  await askResponse(gateway, { input: 'draw', background: true });
  const shown = await fetch(`${gateway.url}/v1/responses/resp_1?stream=true`, {
    headers: { authorization: `Bearer ${testKey}` },
  });
  t.ok((await shown.text()) === completed);
  await eventually(() => costOf(gateway) > 0);
  t.equal(costOf(gateway), cost);
  const input = [{ type: 'item_reference', id: 'ig_1' }];
  await eventually(async () => (await askResponse(gateway, { input }, otherAsks)).status === 404);
});
