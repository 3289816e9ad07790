import { type Test, test } from 'tap';
import type { JsonObject } from '../../../src/wire/json.js';
import { holdConversations, type StoreProcess } from '../../suites/store-processes.js';
import {
  askResponse,
  chatStream,
  keptIn,
  streamResponse,
  wholeOrStream,
} from '../../support/conversations.js';
import { eventually } from '../../support/eventually.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import { startTranslated, type TranslatedStage } from '../../support/translated.js';
import { completion, jsonAnswer } from '../../support/upstream.js';

interface Blocked extends TranslatedStage {
  /** Keeps everybody from writing to the store, until it is killed. */
  block(): Promise<StoreProcess>;
  /** How long ends wait for the store from now on: longer than any test takes, or hardly at all. */
  wait(how: 'long' | 'briefly'): void;
}

const longMs = 600_000;

/** A gateway whose store can be blocked, as by a disk that takes its time. */
async function blockable(t: Test, config: object = {}): Promise<Blocked> {
  const path = temporaryFolder(t);
  const storeWait = { endMs: longMs, turnsMs: longMs };
  const gateway = await startTranslated(t, {
    answer: jsonAnswer(200, completion),
    config: { ...keptIn(path), ...config },
    storeWait,
  });
  // The files are made by the first turn.
  await askResponse(gateway, { input: 'first' });
  return {
    ...gateway,
    block: () => holdConversations(t, path),
    wait(how) {
      storeWait.endMs = how === 'long' ? longMs : 100;
    },
  };
}

const lastOf = (text: string): JsonObject =>
  JSON.parse(text.trimEnd().split('\ndata: ').at(-1) ?? '') as JsonObject;

test('the end of a stream leaves only when its turn is kept', async (t) => {
  const gateway = await blockable(t);
  gateway.upstream.answer = chatStream('hello');
  const holder = await gateway.block();
  const stream = await streamResponse(gateway, { input: 'one' });
  await stream.until('response.output_item.done');
  t.match(stream.text, /hello/, 'everything before it has left');
  const ended = stream.rest();
  t.notMatch(stream.text, /response\.completed/);
  holder.kill();
  const last = lastOf(await ended);
  t.match(last, { type: 'response.completed', response: { store: true } });
  const { id } = last.response as JsonObject;
  gateway.upstream.answer = jsonAnswer(200, completion);
  t.equal((await askResponse(gateway, { input: 'two', previous_response_id: id })).status, 200);
});

test('a whole answer waits in the same way', async (t) => {
  const gateway = await blockable(t);
  const holder = await gateway.block();
  let isAnswered = false;
  const asked = askResponse(gateway, { input: 'one' }).then((answer) => {
    isAnswered = true;
    return answer;
  });
  await gateway.upstream.request(1);
  // What asks later and is not kept overtakes it.
  t.match(await askResponse(gateway, { input: 'else', store: false }), {
    status: 200,
    body: { store: false },
  });
  t.equal(isAnswered, false);
  holder.kill();
  const { status, body } = await asked;
  t.match({ status, body }, { status: 200, body: { store: true } });
  t.equal((await askResponse(gateway, { input: 'two', previous_response_id: body.id })).status, 200);
});

test('a store that does not answer costs nobody the answer who has not asked for it', async (t) => {
  const gateway = await blockable(t);
  await gateway.block();
  gateway.wait('briefly');
  const whole = await askResponse(gateway, { input: 'one', metadata: { a: '"store":true' } });
  t.match(whole, {
    status: 200,
    body: { store: false, status: 'completed', metadata: { a: '"store":true' } },
  });
  gateway.upstream.answer = chatStream('hello');
  const stream = await streamResponse(gateway, { input: 'one' });
  const last = lastOf(await stream.rest());
  t.match(last, {
    type: 'response.completed',
    response: { store: false, status: 'completed', output: [{ content: [{ text: 'hello' }] }] },
  });
});

test('a store that does not answer is an error for whoever has asked for it', async (t) => {
  const gateway = await blockable(t);
  const holder = await gateway.block();
  gateway.wait('briefly');
  gateway.upstream.answer = wholeOrStream(jsonAnswer(200, completion), chatStream('hello'));
  const [whole, text] = await Promise.all([
    askResponse(gateway, { input: 'one', store: true }),
    streamResponse(gateway, { input: 'one', store: true }).then((stream) => stream.rest()),
  ]);
  t.match(whole, { status: 503, body: { error: { code: 'store_unavailable' } } });
  const numbers = [...text.matchAll(/"sequence_number":(\d+)/g)].map(([, number]) => Number(number));
  t.match(lastOf(text), { type: 'error', code: 'store_unavailable', sequence_number: numbers.length - 1 });
  t.notMatch(text, /response\.completed/);
  const failed = () => gateway.lines.filter(({ error }) => error === 'store_unavailable');
  await eventually(() => failed().length === 2);
  const outcomes = failed().map(({ outcome }) => outcome);
  t.same(outcomes, ['refused', 'refused'], 'which is not the upstream’s failure');
  const told = () => gateway.lines.flatMap(({ msg }) => (/conversations/.test(`${msg}`) ? [msg] : []));
  const failing = 'the store keeps no conversations: calls are answered without';
  t.same(told(), [failing], 'operators are told, once for all calls of a minute');
  holder.kill();
  gateway.wait('long');
  t.match(await askResponse(gateway, { input: 'one', store: true }), { status: 200, body: { store: true } });
  t.same(told(), [failing, 'the store keeps conversations again']);
});

test('what can never be kept says so from the start, and waits for nothing', async (t) => {
  const gateway = await blockable(t, { conversations: { recordBytes: 4096 } });
  gateway.upstream.answer = chatStream('hello');
  const holder = await gateway.block();
  const stream = await streamResponse(gateway, { input: 'x'.repeat(6000), store: true });
  const text = await stream.rest();
  t.match(text.split('\n\n')[0], /"store":false/);
  t.match(lastOf(text), { type: 'response.completed', response: { store: false } });
  holder.kill();
});

test('keep-alives go on while an end waits', async (t) => {
  const gateway = await blockable(t, { timeouts: { keepAliveMs: 200 } });
  gateway.upstream.answer = chatStream('hello');
  const holder = await gateway.block();
  const stream = await streamResponse(gateway, { input: 'one' });
  await stream.until(/response\.output_item\.done.*: keep-alive/s);
  holder.kill();
  t.match(lastOf(await stream.rest()), { type: 'response.completed' });
});

test('a client that leaves while the end waits is accounted for as one that left', async (t) => {
  const gateway = await blockable(t);
  gateway.upstream.answer = chatStream('hello');
  const holder = await gateway.block();
  const stream = await streamResponse(gateway, { input: 'one' });
  await stream.until('response.output_item.done');
  await stream.cancel();
  const line = await gateway.line((each) => each.msg === 'request' && each.outcome === 'client_gone');
  t.match(line, { outcome: 'client_gone' });
  holder.kill();
  gateway.upstream.answer = jsonAnswer(200, completion);
  t.equal((await askResponse(gateway, { input: 'two' })).status, 200, 'and all goes on');
});
