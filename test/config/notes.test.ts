import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { parseConfig } from '../../src/config/load.js';
import { notesOf, warningsOf } from '../../src/config/notes.js';
import { testConfig } from '../support/gateway-config.js';

const source = { directory: '.', environment: {}, created: 0 };

function notes(upstream: object, target: object, protocols: readonly string[]): readonly string[] {
  const file = testConfig({
    upstreams: ['https://else.example/v1'],
    protocols,
    upstream: { ...upstream },
    target: { ...target },
  });
  return notesOf(parseConfig(JSON.stringify(priced(file)), source));
}

/** The config with a price for its model. */
function priced(file: Readonly<Record<string, unknown>>): object {
  const { m } = file.models as { readonly m: object };
  return { ...file, models: { m: { ...m, price: {} } } };
}

const messages = { kind: 'messages' };
const chat = { kind: 'chat' };
const only = { responses: 'only' };

test('a target that may be asked for a search that it does not have is noted', async (t) => {
  const noted = [/^models\.m\.targets\[0\] .*translation\.search/];
  t.match(notes(messages, {}, ['messages', 'chat']), noted);
  t.match(notes(chat, only, ['messages']), noted);
  t.match(notes({ ...messages, baseUrl: 'https://anthropic.com.example/v1' }, {}, ['chat']), noted);
});

test('no note is made of targets that say so, that search, or of which no search is asked', async (t) => {
  for (const search of [true, false])
    t.strictSame(notes(messages, { translation: { search } }, ['chat']), []);
  t.strictSame(notes(messages, { preset: 'vllm' }, ['chat']), []);
  t.strictSame(notes({ ...messages, baseUrl: 'https://api.anthropic.com/v1' }, {}, ['chat']), []);
  t.strictSame(notes({ ...chat, baseUrl: 'https://eu.api.openai.com/v1' }, only, ['messages']), []);
  t.strictSame(notes(messages, {}, ['messages']), [], 'what passes as it came');
  t.strictSame(notes(chat, only, ['responses']), []);
  t.strictSame(notes(chat, {}, ['messages', 'chat']), []);
});

test('settings for upstreams of kind chat are noted at others', async (t) => {
  const images = { images: 'dashscope' };
  const quiet = { translation: { search: false } };
  t.strictSame(notes({ ...messages, responsesSocket: true }, quiet, ['messages']), [
    "upstreams.u0.responsesSocket changes nothing: it is for upstreams of kind chat, and this one's is messages",
  ]);
  t.strictSame(notes(messages, { ...quiet, ...images }, ['messages']), [
    "models.m.targets[0].images changes nothing: it is for upstreams of kind chat, and this one's is messages",
  ]);
  t.strictSame(notes({ ...chat, responsesSocket: true }, images, ['chat', 'images']), []);
});

test('models without a price are noted, with what becomes of their calls', async (t) => {
  const noted = (more: object) =>
    notesOf(
      parseConfig(
        JSON.stringify({ ...testConfig({ upstreams: ['https://else.example/v1'] }), ...more }),
        source,
      ),
    );
  const free = ['no price is set for m: their calls are charged nothing'];
  const refused = ['no price is set for m: calls that have a budget are refused'];
  const budget = { usd: 1, per: 'day' };
  const groups = { default: { models: ['*'], budget } };
  t.strictSame(noted({}), free);
  t.strictSame(noted({ groups }), refused);
  t.strictSame(noted({ groups, unpriced: 'free' }), free);
  const target = { protocols: ['chat'], targets: [{ upstream: 'u0' }] };
  const many = Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`m${index}`, target]));
  t.match(noted({ models: many }), [/^no price is set for m0, .*, m49 and 10 more: /]);
  t.strictSame(noted({ models: { m: { ...target, price: { input: 0 } } } }), []);
});

test('prices for one token in place of a million are noted', async (t) => {
  const noted = (price: object, protocol = 'chat') => {
    const file = testConfig({ upstreams: ['https://else.example/v1'] });
    const models = { m: { protocols: [protocol], targets: [{ upstream: 'u0' }], price } };
    return notesOf(parseConfig(JSON.stringify({ ...file, models }), source));
  };
  t.strictSame(noted({ input: 0.00000125, output: 0.00001 }), [
    'models.m.price has less than 0.0001 USD for a million tokens: prices are for a million, not for one',
  ]);
  t.strictSame(noted({ input: 0, output: 0.001 }), []);
  t.strictSame(noted({ characters: 0.000015 }, 'audio'), [
    'models.m.price has less than 0.01 USD for a million characters: prices are for a million, not for one',
  ]);
  t.strictSame(noted({ characters: 15 }, 'audio'), []);
});

test('a model with a price of characters alone is noted if it has calls other than speech', async (t) => {
  const noted = (price: object, protocols: readonly string[]) => {
    const file = testConfig({ upstreams: ['https://else.example/v1'] });
    const models = { m: { protocols, targets: [{ upstream: 'u0' }], price } };
    return notesOf(parseConfig(JSON.stringify({ ...file, models }), source));
  };
  const free = [/^models\.m\.price has characters alone: only speech has any/];
  t.match(noted({ characters: 15 }, ['chat']), free);
  t.match(noted({ characters: 15 }, ['audio', 'chat']), free);
  t.strictSame(noted({ characters: 15 }, ['audio']), []);
  t.strictSame(noted({ characters: 15, input: 1 }, ['audio', 'chat']), []);
  t.strictSame(noted({ input: 1 }, ['chat']), []);
});

test('a key that has expired, and a chat upstream without a path, are noted', async (t) => {
  const hash = `sha256:${'ab'.repeat(32)}`;
  const key = { id: 'old', hash, groups: ['default'], expiresAt: '2020-01-01T00:00:00Z' };
  const file = priced(testConfig({ upstreams: ['https://else.example/', 'https://else.example/v1'] }));
  const noted = notesOf(parseConfig(JSON.stringify({ ...file, keys: [key] }), source));
  t.strictSame(noted, [
    'upstreams.u0 is asked at https://else.example/chat/completions: if it wants a version, write it into baseUrl',
    'the key old has expired: its calls are refused since 2020-01-01T00:00:00.000Z',
  ]);
});

test('images and videos that no price is for are noted', async (t) => {
  const noted = (price: object) => {
    const file = testConfig({ upstreams: ['https://else.example/v1'] });
    const { m } = file.models as { readonly m: object };
    return notesOf(parseConfig(JSON.stringify({ ...file, models: { m: { ...m, price } } }), source));
  };
  const image = { size: '1024x1024', usd: 0.04 };
  const second = { resolution: '1080p', usd: 0.5 };
  t.match(noted({ images: [image] }), [/^models\.m has prices of images and no perCall/]);
  t.match(noted({ seconds: [second] }), [/^models\.m has prices of seconds and no perSecond/]);
  t.strictSame(noted({ images: [image, { usd: 0.08 }] }), []);
  t.strictSame(noted({ images: [image], perCall: 0.08, seconds: [second], perSecond: 0.5 }), []);
});

test('sounds that are paid by tokens alone are noted', async (t) => {
  const noted = (price: object, protocols: readonly string[] = ['audio']) => {
    const file = testConfig({ upstreams: ['https://else.example/v1'], protocols });
    const { m } = file.models as { readonly m: object };
    return notesOf(parseConfig(JSON.stringify({ ...file, models: { m: { ...m, price } } }), source));
  };
  t.match(noted({ input: 1, output: 2 }), [/^models\.m has prices of tokens and neither/]);
  t.match(noted({ audioOutput: 2 }), [/^models\.m has prices of tokens and neither/]);
  t.strictSame(noted({ input: 1, perSecond: 0.1 }), []);
  t.strictSame(noted({ input: 1, perCall: 0.1 }), []);
  t.strictSame(noted({ characters: 15 }), []);
  t.strictSame(noted({ input: 1, characters: 15 }), []);
  t.strictSame(noted({}), []);
  t.strictSame(noted({ input: 1 }, ['chat']), []);
});

test('a certificate that clients refuse is noted', async (t) => {
  const directory = fileURLToPath(new URL('../../../test/fixtures/tls', import.meta.url));
  const noted = (cert: string) => {
    const listen = { tls: { cert, key: 'localhost.key' } };
    const file = testConfig({ upstreams: ['https://else.example/v1'], config: { listen } });
    return notesOf(parseConfig(JSON.stringify(priced(file)), { ...source, directory }));
  };
  t.match(noted('expired.pem'), [/^listen\.tls\.cert has expired: it was valid until .+ GMT$/]);
  t.strictSame(noted('localhost.pem'), []);
});

test('an upstream that is the gateway itself is noted, however it is written', async (t) => {
  const loops = (baseUrl: string, listen: object): number => {
    const file = { ...testConfig({ upstreams: [baseUrl] }), listen };
    return warningsOf(parseConfig(JSON.stringify(file), source)).length;
  };
  const everywhere = { host: '0.0.0.0', port: 8080 };
  t.equal(loops('http://127.0.0.1:8080/v1', { port: 8080 }), 1);
  t.equal(loops('http://localhost:8080/v1', everywhere), 1);
  t.equal(loops('http://[::1]:8080/v1', { host: '::', port: 8080 }), 1);
  t.equal(loops('http://10.0.0.1:8080/v1', { host: '10.0.0.1', port: 8080 }), 1);
  const publicUrl = 'https://ai.example.com/gateway';
  t.equal(loops('https://ai.example.com/v1', { ...everywhere, publicUrl }), 1);
  t.equal(loops('http://127.0.0.1:8081/v1', everywhere), 0, 'another port');
  t.equal(loops('http://10.0.0.2:8080/v1', everywhere), 0, 'another host, for all that is known');
  t.equal(loops('http://127.0.0.1:8080/v1', { host: '10.0.0.1', port: 8080 }), 0);
});

test('a model of Anthropic that refuses forced calls is noted where its preset is that of older ones', async (t) => {
  const own = { kind: 'messages', baseUrl: 'https://api.anthropic.com/v1' };
  const older = { preset: 'claude-4.8' };
  const noted = [/^models\.m\.targets\[0\] .*claude-4\.8.* force .* the preset claude-5\.5$/];
  for (const model of [
    'claude-opus-5-5',
    'claude-sonnet-5-5-20261101',
    'claude-opus-6',
    'claude-fable-5-1',
    'anthropic/claude-sonnet-5.5',
  ])
    t.match(notes(own, { ...older, model }, ['messages']), noted, model);
  for (const model of ['claude-opus-5-20260901', 'claude-opus-4-8', 'claude-haiku-5-5', 'claude-fable-5'])
    t.strictSame(notes(own, { ...older, model }, ['messages']), [], model);
  const model = 'claude-opus-5-5';
  t.match(notes({ ...own, ...older }, { model }, ['messages']), noted);
  t.strictSame(notes(own, { preset: 'claude-5.5', model }, ['messages']), []);
  const elsewhere = { kind: 'messages', baseUrl: 'https://else.example/v1' };
  t.strictSame(notes(elsewhere, { ...older, model }, ['messages']), [], 'its beta may be unknown there');
});

test('a key that is the name of a variable is noted', async (t) => {
  const noted = (apiKey: string): readonly string[] => notes({ apiKeys: ['sk-1', apiKey] }, {}, ['chat']);
  for (const apiKey of ['$MAIN_KEY', 'os.environ/MAIN_KEY', 'env.MAIN_KEY'])
    t.match(noted(apiKey), [/^upstreams\.u0\.apiKeys\[1\] is the name of a variable: .*\$\{NAME\}$/]);
  t.strictSame(noted('sk-$x'), []);
});

test('a model that knows the effort none is noted where its preset is that of older ones', async (t) => {
  const older = { preset: 'openai-reasoning' };
  const own = { ...chat, baseUrl: 'https://api.openai.com/v1' };
  const noted = (preset: string) => [
    new RegExp(`^models\\.m\\.targets\\[0\\] .*openai-reasoning.* none .* the preset ${preset}$`),
  ];
  for (const model of ['gpt-5.1', 'openai/gpt-5.4-mini', 'GPT-5.1-2025-11-13', 'gpt-6', 'gpt-5.10'])
    t.match(notes(chat, { ...older, model }, ['chat']), noted('openai-5\\.1'), model);
  t.match(notes({ ...chat, ...older }, { model: 'gpt-5.2' }, ['chat']), noted('openai-5\\.1'));
  t.match(notes(own, { ...older, model: 'gpt-5.2' }, ['chat']), noted('openai-5\\.1'));
  for (const model of ['gpt-5.6', 'gpt-6-mini'])
    t.match(notes(own, { ...older, model }, ['chat']), noted('openai-5\\.6'), model);
  for (const model of [
    'gpt-5',
    'gpt-5-2025-08-07',
    'gpt-4.1',
    'o3',
    'gpt-5.1-codex',
    'gpt-oss-120b',
    'x-gpt-50',
  ])
    t.strictSame(notes(chat, { ...older, model }, ['chat']), [], model);
  t.strictSame(notes(chat, { preset: 'openai-5.1', model: 'gpt-5.1' }, ['chat']), []);
  t.strictSame(notes({ ...chat, ...older }, { preset: 'openai-5.1', model: 'gpt-5.1' }, ['chat']), []);
  const file = testConfig({ upstreams: ['https://else.example/v1'], target: { ...older, model: 'gpt-5.1' } });
  t.match(warningsOf(parseConfig(JSON.stringify(file), source)), noted('openai-5\\.1'), 'also at start');
});
