import { open } from 'lmdb';
import { type Test, test } from 'tap';
import { hashKey } from '../../../src/keys/secret.js';
import { createEmbeddedStore } from '../../../src/store/embedded.js';
import { openBase } from '../../../src/store/embedded-base.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { askResponse, chatStream, keptIn } from '../../support/conversations.js';
import { startGateway, testKey } from '../../support/gateway.js';
import { postJson } from '../../support/post-json.js';
import { startRouted } from '../../support/routed.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import { startTranslated, type TranslatedStage } from '../../support/translated.js';
import { completion, jsonAnswer, type RawUpstream, startRawUpstream } from '../../support/upstream.js';

const otherKey = 'sk-other';
const keys = [
  { id: 'test', hash: hashKey(testKey), groups: ['default'] },
  { id: 'other', hash: hashKey(otherKey), groups: ['default'] },
];

async function stage(t: Test, settings: object = {}, path = temporaryFolder(t)): Promise<TranslatedStage> {
  return startTranslated(t, {
    answer: jsonAnswer(200, completion),
    config: { ...keptIn(path, settings), keys },
  });
}

/** The messages that a chat upstream was sent last. */
function lastMessages({ upstream }: { readonly upstream: RawUpstream }): unknown {
  return (JSON.parse(upstream.requests.at(-1)?.body.toString() ?? '{}') as JsonObject).messages;
}

const said = (JSON.parse(completion) as { choices: [{ message: { content: string } }] }).choices[0].message
  .content;

test('a turn that goes on from a response by its id has all that was said before it', async (t) => {
  const gateway = await stage(t);
  const first = await askResponse(gateway, { input: 'one', instructions: 'Be brief.' });
  t.match(first, { status: 200, body: { id: /^resp_/, store: true, previous_response_id: null } });
  const second = await askResponse(gateway, { input: 'two', previous_response_id: first.body.id });
  t.match(second, { status: 200, body: { store: true, previous_response_id: first.body.id } });
  t.same(
    lastMessages(gateway),
    [
      { role: 'user', content: 'one' },
      { role: 'assistant', content: said },
      { role: 'user', content: 'two' },
    ],
    'without the instructions of the turn before, which the vendor does not carry over either',
  );
  const third = await askResponse(gateway, {
    input: [{ role: 'user', content: 'three' }],
    previous_response_id: second.body.id,
    store: false,
  });
  t.match(third, { status: 200, body: { store: false, previous_response_id: second.body.id } });
  t.match(lastMessages(gateway), [
    { content: 'one' },
    { content: said },
    { content: 'two' },
    { content: said },
    { content: 'three' },
  ]);
  const fork = await askResponse(gateway, { input: 'else', previous_response_id: first.body.id });
  t.equal(fork.status, 200);
  t.match(lastMessages(gateway), [{ content: 'one' }, { content: said }, { content: 'else' }]);
  const none = await askResponse(gateway, { input: 'four', previous_response_id: third.body.id });
  t.match(none, { status: 400, body: { error: { code: 'previous_response_not_found' } } }, 'store: false');
});

test('what is kept here is not told to be left out', async (t) => {
  const gateway = await startTranslated(t, {
    kind: 'generateContent',
    answer: jsonAnswer(200, '{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}]}'),
    config: keptIn(temporaryFolder(t)),
  });
  const kept = await askResponse(gateway, { input: 'one', store: true, truncation: 'auto' });
  t.equal(kept.status, 200);
  t.equal(kept.headers.get('x-gateway-left-out'), 'truncation');
});

test('a streamed turn is kept, and a turn after it may be asked of another gateway on the same store', async (t) => {
  const path = temporaryFolder(t);
  const [gateway, other] = await Promise.all([stage(t, {}, path), stage(t, {}, path)]);
  gateway.upstream.answer = chatStream('streamed');
  const answer = await postJson(`${gateway.url}/v1/responses`, { model: 'm', input: 'one', stream: true });
  const text = await answer.text();
  const last = JSON.parse(text.trimEnd().split('\ndata: ').at(-1) ?? '') as { response: JsonObject };
  t.match(last, { type: 'response.completed', response: { status: 'completed', store: true } });
  const second = await askResponse(other, { input: 'two', previous_response_id: last.response.id });
  t.equal(second.status, 200);
  t.match(lastMessages(other), [{ content: 'one' }, { content: 'streamed' }, { content: 'two' }]);
});

test('references to items are replaced by the items', async (t) => {
  const gateway = await stage(t);
  const { body } = await askResponse(gateway, { input: 'one' });
  const [item] = body.output as JsonObject[];
  const second = await askResponse(gateway, {
    input: [
      { role: 'user', content: 'one' },
      { type: 'item_reference', id: item?.id },
      { role: 'user', content: 'two' },
    ],
  });
  t.equal(second.status, 200);
  t.match(lastMessages(gateway), [
    { content: 'one' },
    { role: 'assistant', content: said },
    { content: 'two' },
  ]);
  const third = await askResponse(gateway, { input: 'three', previous_response_id: second.body.id });
  t.equal(third.status, 200);
  t.equal((lastMessages(gateway) as unknown[]).length, 5, 'what was referred to is part of the turn');
  const mixed = await askResponse(gateway, {
    previous_response_id: body.id,
    input: [{ type: 'item_reference', id: `msg_${String(second.body.id).slice('resp_'.length)}` }],
  });
  t.equal(mixed.status, 200);
  t.match(lastMessages(gateway), [{ content: 'one' }, { role: 'assistant', content: `${said}${said}` }]);
});

test('a reference needs no type', async (t) => {
  const gateway = await stage(t);
  const { body } = await askResponse(gateway, { input: 'one' });
  const [item] = body.output as JsonObject[];
  for (const reference of [{ id: item?.id }, { id: item?.id, type: null }, { type: null, id: item?.id }]) {
    const second = await askResponse(gateway, {
      input: [{ role: 'user', content: 'one' }, reference, { role: 'user', content: 'two' }],
    });
    t.equal(second.status, 200);
    t.match(lastMessages(gateway), [
      { content: 'one' },
      { role: 'assistant', content: said },
      { content: 'two' },
    ]);
  }
  const unknown = await askResponse(gateway, { input: [{ id: 'msg_unknown' }] });
  t.match(unknown, { status: 404, body: { error: { message: "Item with id 'msg_unknown' not found." } } });
});

test('what a turn refers to is not kept again, and lives as long as the turn', async (t) => {
  const path = temporaryFolder(t);
  const gateway = await stage(t, { hours: 1 }, path);
  const store = createEmbeddedStore({ path });
  t.teardown(() => store.close());
  const recordOf = async (id: unknown): Promise<string> =>
    (await store.owned.find('test', [String(id)], 1_000_000))?.values[0] ?? '';
  const expiryOf = (record: string): number => {
    const base = openBase(open, path);
    const found = [...base.owned().values.getRange({})].find(({ value }) => value.includes(record));
    base.close();
    return found?.value.readDoubleBE(0) ?? 0;
  };
  const one = { role: 'user', content: 'one' };
  const two = { role: 'user', content: 'two' };
  const first = await askResponse(gateway, { input: [one] });
  const [item] = first.body.output as JsonObject[];
  const record = await recordOf(first.body.id);
  const dueMs = 60_000;
  const bounds = { owner: 1_000_000, all: 1_000_000 };
  await store.owned.keep('test', [{ id: String(first.body.id), value: record }], dueMs, bounds);
  const due = expiryOf(record);
  const input = [one, { type: 'item_reference', id: item?.id }, two];
  const second = await askResponse(gateway, { input });
  t.match(second, { status: 200, body: { store: true } });
  t.match(JSON.parse(await recordOf(second.body.id)), { before: [first.body.id], items: [two] });
  t.ok(expiryOf(record) > due + 50 * 60_000, 'an hour from then on');
  const third = await askResponse(gateway, { input: 'three', previous_response_id: second.body.id });
  t.equal(third.status, 200);
  const texts = (lastMessages(gateway) as JsonObject[]).map(({ content }) => content);
  t.same(texts, ['one', said, 'two', said, 'three']);
});

test('what is not kept is not found, in the words of the vendor, and reaches no upstream', async (t) => {
  const gateway = await stage(t);
  const { body } = await askResponse(gateway, { input: 'one' });
  const count = gateway.upstream.requests.length;
  for (const id of ['resp_1', `resp_${'0'.repeat(26)}`, 'x'.repeat(300), '../..', 'resp_\u0000', '']) {
    const { status, body } = await askResponse(gateway, { input: 'x', previous_response_id: id });
    t.equal(status, 400, id);
    t.match(body, {
      error: {
        type: 'invalid_request_error',
        param: 'previous_response_id',
        code: 'previous_response_not_found',
      },
    });
  }
  const referring = (id: unknown) => ({ input: [{ type: 'item_reference', id }] });
  for (const id of ['rs_1', `msg_${'0'.repeat(26)}`, `${String(body.id).replace('resp', 'msg')}_7`, '\n']) {
    const { status, body } = await askResponse(gateway, referring(id));
    t.equal(status, 404, id);
    t.match(body, { error: { type: 'invalid_request_error', param: 'input', code: null } });
    if (id === 'rs_1') t.match(body, { error: { message: "Item with id 'rs_1' not found." } });
  }
  const others = await askResponse(gateway, { input: 'x', previous_response_id: body.id }, { key: otherKey });
  t.match(others, { status: 400, body: { error: { code: 'previous_response_not_found' } } });
  const item = String(body.id).replace('resp', 'msg');
  t.equal((await askResponse(gateway, referring(item), { key: otherKey })).status, 404);
  t.equal(gateway.upstream.requests.length, count);
});

test('the id of a turn that is kept cannot be made from the ids of its call', async (t) => {
  const gateway = await stage(t);
  const first = await askResponse(gateway, { input: 'one' });
  const call = String(first.headers.get('x-request-id')).slice('req_'.length);
  t.match(first.body.id, new RegExp(`^resp_${call}[0-9a-f]{24}$`));
  const [item] = first.body.output as JsonObject[];
  t.equal(item?.id, String(first.body.id).replace('resp_', 'msg_'));
  const guessed = await askResponse(gateway, { input: 'two', previous_response_id: `resp_${call}` });
  t.match(guessed, { status: 400, body: { error: { code: 'previous_response_not_found' } } });
  const unkept = await askResponse(gateway, { input: 'one', store: false });
  const ofCall = String(unkept.headers.get('x-request-id')).slice('req_'.length);
  t.equal(unkept.body.id, `resp_${ofCall}`, 'where nothing is kept there is nothing to guess');
});

test('a compaction is made of what was kept', async (t) => {
  const gateway = await stage(t);
  const { body } = await askResponse(gateway, { input: 'one' });
  const path = '/v1/responses/compact';
  const compacted = await askResponse(gateway, { previous_response_id: body.id }, { path });
  t.match(compacted, { status: 200, body: { object: 'response.compaction' } });
  t.match(lastMessages(gateway), [{ content: 'one' }, { content: said }, {}]);
  const none = await askResponse(gateway, { previous_response_id: 'resp_1' }, { path });
  t.match(none, { status: 400, body: { error: { code: 'previous_response_not_found' } } });
});

test('a conversation that is too large with what is kept of it is refused', async (t) => {
  const gateway = await startTranslated(t, {
    answer: jsonAnswer(200, completion),
    config: { ...keptIn(temporaryFolder(t)), limits: { bodyBytes: 2000 } },
  });
  const first = await askResponse(gateway, { input: 'x'.repeat(1500) });
  t.equal(first.status, 200);
  const second = await askResponse(gateway, { input: 'x'.repeat(1500), previous_response_id: first.body.id });
  t.match(second, { status: 413, body: { error: { code: 'request_too_large' } } });
});

test('a conversation of several mebibytes goes on until it is too large', async (t) => {
  const gateway = await startTranslated(t, {
    answer: jsonAnswer(200, completion),
    config: { ...keptIn(temporaryFolder(t)), limits: { bodyBytes: 4_000_000 } },
  });
  const input = 'x'.repeat(1_500_000);
  const first = await askResponse(gateway, { input });
  const second = await askResponse(gateway, { input, previous_response_id: first.body.id });
  t.match(second, { status: 200, body: { store: true } });
  t.match(lastMessages(gateway), [{ content: input }, { content: said }, { content: input }]);
  const third = await askResponse(gateway, { input, previous_response_id: second.body.id });
  t.match(third, { status: 413, body: { error: { code: 'request_too_large' } } });
  const wrong = await askResponse(gateway, {
    input: [{ type: 'item_reference', id: 'msg_1' }],
    previous_response_id: second.body.id,
  });
  t.match(wrong, { status: 404, body: { error: { param: 'input' } } });
});

test('the oldest turns of a key give way, and a turn that is larger than allowed is not kept', async (t) => {
  const gateway = await stage(t, { keyBytes: 8192, recordBytes: 5000 });
  const first = await askResponse(gateway, { input: 'x'.repeat(2000) });
  const others = [];
  for (let turn = 0; turn < 4; turn += 1)
    others.push(await askResponse(gateway, { input: 'y'.repeat(1000) }));
  const gone = await askResponse(gateway, { input: 'two', previous_response_id: first.body.id });
  t.equal(gone.status, 400);
  const there = await askResponse(gateway, { input: 'two', previous_response_id: others.at(-1)?.body.id });
  t.equal(there.status, 200);
  const large = await askResponse(gateway, { input: 'x'.repeat(6000), store: true });
  t.match(large, { status: 200, body: { store: false } }, 'it says so');
  t.equal((await askResponse(gateway, { input: 'a', previous_response_id: large.body.id })).status, 400);
});

test('where nothing is kept, the ids of earlier turns are refused by name, and answers say so', async (t) => {
  const gateway = await startTranslated(t, { answer: jsonAnswer(200, completion) });
  t.match(await askResponse(gateway, { input: 'one', store: true }), { status: 200, body: { store: false } });
  const previous = await askResponse(gateway, { input: 'two', previous_response_id: 'resp_1' });
  t.match(previous, { status: 400, body: { error: { code: 'unsupported_parameter' } } });
  const item = await askResponse(gateway, { input: [{ type: 'item_reference', id: 'msg_1' }] });
  t.match(item, { status: 400, body: { error: { code: 'unsupported_parameter' } } });
});

test('background is refused by name', async (t) => {
  const gateway = await stage(t);
  const { status, body } = await askResponse(gateway, { input: 'one', background: true });
  t.match({ status, body }, { status: 400, body: { error: { param: 'background' } } });
});

/** An answer of a responses upstream, whose ids are told by its name. */
function nativeResponse(id: string): string {
  const content = [{ type: 'output_text', text: 'native', annotations: [] }];
  return JSON.stringify({
    id,
    object: 'response',
    status: 'completed',
    output: [{ type: 'message', id: `${id}_item`, role: 'assistant', status: 'completed', content }],
    usage: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
  });
}

/** A whole stream of a responses upstream, in its own way of writing. */
function nativeStream(id: string): string {
  const response = nativeResponse(id);
  const created = `event: response.created\ndata: {"type":"response.created","response":{"id":"${id}"}}\n\n`;
  const last = `event: response.completed\ndata: {"type": "response.completed", "response": ${response}}\n\n`;
  const text = created + last;
  return (
    'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n' +
    `content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
  );
}

test('what one of several upstreams keeps is asked of that one', async (t) => {
  const answers = ['a', 'b'].map((name) => {
    let count = 0;
    return ({ body }: { body: Buffer }): string => {
      count += 1;
      const id = `resp_${name}${count}`;
      return body.includes('"stream":true') ? nativeStream(id) : jsonAnswer(200, nativeResponse(id));
    };
  });
  const routed = await startRouted(t, answers, {
    protocols: ['responses'],
    target: { responses: true, priority: 0 },
    config: { ...keptIn(temporaryFolder(t)), routing: { affinity: false } },
  });
  const holderOf = (id: unknown): number => (String(id).startsWith('resp_a') ? 0 : 1);
  for (const stream of [false, true]) {
    for (let turn = 0; turn < 6; turn += 1) {
      const answer = await postJson(`${routed.gateway.url}/v1/responses`, {
        model: 'm',
        input: 'one',
        stream,
      });
      const id = /"id": ?"(resp_[ab]\d+)"/.exec(await answer.text())?.[1];
      const before = routed.counts();
      const next = await askResponse(routed.gateway, { input: 'two', previous_response_id: id });
      t.equal(next.status, 200);
      t.equal(holderOf(next.body.id), holderOf(id), `${id} is known there`);
      const [item] = next.body.output as JsonObject[];
      const third = await askResponse(routed.gateway, { input: [{ type: 'item_reference', id: item?.id }] });
      t.equal(holderOf(third.body.id), holderOf(id), `${String(item?.id)} is known there`);
      const after = routed.counts();
      t.equal((after[holderOf(id)] ?? 0) - (before[holderOf(id)] ?? 0), 2);
      const sent = routed.upstreams[holderOf(id)]?.requests.at(-2)?.body.toString() ?? '';
      t.equal((JSON.parse(sent) as JsonObject).previous_response_id, id, 'as it came');
    }
  }
  const unknown = await askResponse(routed.gateway, { input: 'two', previous_response_id: 'resp_elsewhere' });
  t.equal(unknown.status, 200, 'an id that nobody here knows is for an upstream to judge');
});

test('what was made with one of several keys is asked with that key', async (t) => {
  let count = 0;
  const routed = await startRouted(
    t,
    [
      ({ head }: { head: string }): string => {
        count += 1;
        return jsonAnswer(200, nativeResponse(`resp_${/key-\d/.exec(head)?.[0]}_${count}`));
      },
    ],
    {
      protocols: ['responses'],
      upstream: { apiKeys: ['key-1', 'key-2', 'key-3'] },
      target: { responses: true },
      config: keptIn(temporaryFolder(t)),
    },
  );
  const keyOf = (id: unknown): string | undefined => /key-\d/.exec(String(id))?.[0];
  const seen = new Set<string | undefined>();
  for (let turn = 0; turn < 10; turn += 1) {
    const first = await askResponse(routed.gateway, { input: 'one' });
    const next = await askResponse(routed.gateway, { input: 'two', previous_response_id: first.body.id });
    t.equal(keyOf(next.body.id), keyOf(first.body.id));
    seen.add(keyOf(first.body.id));
  }
  t.ok(seen.size > 1, 'which others were made with as well');
});

test('a turn whose holder is gone from the config is not found, so that its client sends everything', async (t) => {
  const path = temporaryFolder(t);
  const upstreams = await Promise.all(
    ['a', 'b'].map((name) => startRawUpstream(t, jsonAnswer(200, nativeResponse(`resp_${name}`)))),
  );
  const options = { protocols: ['responses'], target: { responses: true }, config: keptIn(path) };
  const urls = upstreams.map(({ url }) => url);
  const both = await startGateway(t, { ...options, upstreams: urls });
  const first = await askResponse(both, { input: 'one' });
  t.equal(first.body.id, 'resp_a');
  const renamed = await startGateway(t, { ...options, upstreams: urls, alias: 'another' });
  const next = await askResponse(renamed, { input: 'two', previous_response_id: 'resp_a' });
  t.match(next, { status: 400, body: { error: { code: 'previous_response_not_found' } } });
});

test('a model that is served both ways goes on from either', async (t) => {
  const [native, chat] = await Promise.all([
    startRawUpstream(t, jsonAnswer(200, nativeResponse('resp_native'))),
    startRawUpstream(t, jsonAnswer(200, completion)),
  ]);
  const gateway = await startGateway(t, {
    protocols: ['responses'],
    config: {
      ...keptIn(temporaryFolder(t)),
      upstreams: {
        native: { kind: 'chat', baseUrl: native.url },
        chat: { kind: 'chat', baseUrl: chat.url },
      },
      models: {
        m: {
          protocols: ['responses'],
          targets: [
            { upstream: 'native', responses: true },
            { upstream: 'chat', priority: 1 },
          ],
        },
      },
    },
  });
  native.answer = jsonAnswer(503, '{}');
  const translated = await askResponse(gateway, { input: 'one', store: false });
  t.equal(translated.status, 200, 'asked of the other');
  native.answer = jsonAnswer(200, nativeResponse('resp_native'));
  const first = await askResponse(gateway, { input: 'one' });
  t.equal(first.body.id, 'resp_native');
  const held = await askResponse(gateway, { input: 'two', previous_response_id: 'resp_native' });
  t.equal(held.body.id, 'resp_native', 'and never of the one that does not know it');
});

test('what is kept here goes on at the only target of another model, which does not know it', async (t) => {
  const [native, chat] = await Promise.all([
    startRawUpstream(t, jsonAnswer(200, nativeResponse('resp_native'))),
    startRawUpstream(t, jsonAnswer(200, completion)),
  ]);
  const protocols = ['responses'];
  const gateway = await startGateway(t, {
    protocols,
    config: {
      ...keptIn(temporaryFolder(t)),
      upstreams: {
        native: { kind: 'chat', baseUrl: native.url },
        chat: { kind: 'chat', baseUrl: chat.url },
      },
      models: {
        m: { protocols, targets: [{ upstream: 'chat' }] },
        n: { protocols, targets: [{ upstream: 'native', model: 'm', responses: true }] },
      },
    },
  });
  const sent = (): JsonObject => JSON.parse(native.requests.at(-1)?.body.toString() ?? '{}') as JsonObject;
  const { body } = await askResponse(gateway, { input: 'one' });
  const [item] = body.output as JsonObject[];
  await askResponse(gateway, { model: 'n', input: 'two', previous_response_id: body.id });
  t.match(sent().input, [{ content: 'one' }, { content: [{ text: said }] }, { content: 'two' }]);
  t.notOk('previous_response_id' in sent());
  await askResponse(gateway, { model: 'n', input: [{ type: 'item_reference', id: item?.id }] });
  t.match(sent().input, [{ type: 'message', content: [{ text: said }] }]);
  for (const previous_response_id of ['resp_native', 'resp_unknown']) {
    const own = { model: 'n', input: 'three', previous_response_id };
    await askResponse(gateway, own);
    t.strictSame(sent(), { ...own, model: 'm' }, 'what it made itself, or nobody knows, it is to judge');
  }
});
