import { test } from 'tap';
import { LeftOut } from '../../../src/conversation/left-out.js';
import { chatCodec } from '../../../src/protocols/chat/index.js';
import { generateContentCodec } from '../../../src/protocols/generate-content/index.js';
import { messagesCodec } from '../../../src/protocols/messages/index.js';
import { responsesCodec } from '../../../src/protocols/responses/index.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { createSealer } from '../../../src/wire/seal.js';
import { target } from '../messages/samples.js';
import { writeRequest } from '../write-request.js';

const sealer = createSealer('a secret of the tests');
const serving = {
  service_tier: 'flex',
  prompt_cache_key: 'k',
  prompt_cache_options: { mode: 'explicit' },
  prompt_cache_retention: '24h',
  metadata: { a: 'b' },
};
const ofChat = (more: JsonObject = {}) =>
  chatCodec.decodeRequest(
    { messages: [{ role: 'user', content: 'hi' }], ...serving, ...more },
    false,
    sealer,
  );
const ofResponses = (more: JsonObject = {}) =>
  responsesCodec.decodeRequest({ input: 'hi', ...serving, ...more }, false, sealer);

test('chat and responses keep how a call is to be served, both ways', async (t) => {
  const toResponses = JSON.parse(writeRequest(responsesCodec, ofChat(), target)) as JsonObject;
  t.match(toResponses, { ...serving, store: false });
  const toChat = JSON.parse(writeRequest(chatCodec, ofResponses(), target)) as JsonObject;
  t.match(toChat, { ...serving, store: true });
});

test('metadata goes to chat only beside leave to store', async (t) => {
  const leftOut = new LeftOut();
  const body = JSON.parse(
    writeRequest(chatCodec, ofResponses({ store: false }), target, leftOut),
  ) as JsonObject;
  t.match(body, { service_tier: 'flex', metadata: undefined, store: undefined });
  t.strictSame(leftOut.names, ['metadata']);
  t.match(JSON.parse(writeRequest(chatCodec, ofResponses({ metadata: {} }), target)), { store: undefined });
});

test('what only responses can say of it is left out toward chat, and named', async (t) => {
  const written = (more: JsonObject) => {
    const leftOut = new LeftOut();
    const body = JSON.parse(writeRequest(chatCodec, ofResponses(more), target, leftOut)) as JsonObject;
    return { body, names: leftOut.names };
  };
  const options = { mode: 'explicit', ttl: '12h', prewarm: true, comparison_response_id: 'resp_1' };
  const lost = written({ service_tier: 'ultrafast', prompt_cache_options: options });
  t.notOk('service_tier' in lost.body);
  t.strictSame(lost.body.prompt_cache_options, { mode: 'explicit' });
  t.strictSame(lost.names, [
    'service_tier',
    'prompt_cache_options.ttl',
    'prompt_cache_options.prewarm',
    'prompt_cache_options.comparison_response_id',
  ]);
  t.notOk('prompt_cache_options' in written({ prompt_cache_options: { ttl: '12h' } }).body);
  const known = { mode: 'implicit', ttl: '30m' };
  const kept = written({ prompt_cache_options: { ...known, prewarm: false, comparison_response_id: null } });
  t.strictSame([kept.body.prompt_cache_options, kept.body.service_tier, kept.names], [known, 'flex', []]);
});

test('a request that only prepares the cache generates the least that is possible', async (t) => {
  const prewarming = { prompt_cache_options: { prewarm: true }, max_output_tokens: 900 };
  t.equal(ofResponses(prewarming).maxTokens, 1);
  t.equal(ofResponses({ ...prewarming, prompt_cache_options: { prewarm: false } }).maxTokens, 900);
});

test('the other protocols tell that they left it out', async (t) => {
  for (const codec of [messagesCodec, generateContentCodec]) {
    for (const request of [ofChat(), ofResponses()]) {
      const leftOut = new LeftOut();
      const body = writeRequest(codec, request, target, leftOut);
      for (const name of Object.keys(serving)) t.notMatch(body, `"${name}"`);
      t.strictSame(leftOut.names, Object.keys(serving));
    }
  }
});

test('what says nothing is neither written nor told', async (t) => {
  const nothing = Object.fromEntries(Object.keys(serving).map((name) => [name, null]));
  t.equal(ofChat({ ...nothing, metadata: {}, prompt_cache_key: '' }).serving, undefined);
});
