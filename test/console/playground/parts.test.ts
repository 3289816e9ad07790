import { test } from 'tap';
import { protocolsOf, requestOf } from '../../../src/console/playground/choice.js';
import { emptyLog, logEvent } from '../../../src/console/playground/event-log.js';
import { merged } from '../../../src/console/playground/json.js';
import { readImages } from '../../../src/console/playground/media-request.js';
import { emptyRecord, tokensPerSecond } from '../../../src/console/playground/record.js';
import { readRefusal } from '../../../src/console/playground/refusal.js';
import { parseServerTiming, stretches } from '../../../src/console/playground/server-timing.js';
import type { TextProtocol } from '../../../src/console/playground/text-request.js';
import { textProtocols } from '../../../src/conversation/request.js';
import { startGateway } from '../../support/gateway.js';
import { send, settingsWith } from './asked.js';

// The compiler names this line if the gateway has a text protocol that the page's type lacks.
const known: readonly TextProtocol[] = textProtocols;

test('the playground has every text protocol of the gateway', async (t) => {
  t.strictSame(
    protocolsOf.chat.map(({ name }) => name),
    known,
  );
});

test('the timings of a call are read from its header', async (t) => {
  const { url } = await startGateway(t, { demo: 'simulator' });
  const choice = { kind: 'chat', protocol: 'chat', settings: settingsWith({}) } as const;
  const response = await send(url, requestOf(choice, 'Hello', []));
  const steps = parseServerTiming(response.headers.get('server-timing') ?? '');
  t.strictSame(
    steps.map(({ name }) => name),
    ['auth', 'parse', 'queue', 'upstream', 'own'],
  );
  for (const { name, ms } of steps) t.ok(ms >= 0 && ms < 60_000, `${name} ${ms}`);
});

test('timings of other forms are read as far as they are any', async (t) => {
  t.strictSame(parseServerTiming(''), []);
  t.strictSame(
    parseServerTiming('cache;desc="hit", db;dur=53.2;desc=x, app;desc="a";dur="7", ;dur=3, z;dur=x'),
    [
      { name: 'db', ms: 53.2 },
      { name: 'app', ms: 7 },
    ],
  );
});

test('what is left of the own share is a stretch of its own', async (t) => {
  const steps = parseServerTiming('auth;dur=0.5, parse;dur=1, queue;dur=2, upstream;dur=30, own;dur=4');
  t.strictSame(
    stretches(steps).map(({ name, ms }) => `${name} ${ms}`),
    ['auth 0.5', 'parse 1', 'queue 2', 'upstream 30', 'other 2.5'],
  );
  t.strictSame(stretches(parseServerTiming('auth;dur=2, own;dur=1')), [{ name: 'auth', ms: 2 }]);
});

test('the log keeps the last 2,000 events', async (t) => {
  const log = emptyLog();
  for (let i = 0; i < 2500; i++) logEvent(log, { atMs: i, name: '', data: 'x' });
  t.equal(log.events.length, 2000);
  t.equal(log.events[0]?.index, 500);
  t.equal(log.count, 2500);
  t.equal(log.characters, 2000);
});

test('the log keeps no more than its characters, and cuts an event that is longer alone', async (t) => {
  const log = emptyLog();
  for (let i = 0; i < 50; i++) logEvent(log, { atMs: i, name: '', data: 'x'.repeat(100_000) });
  t.equal(log.events.length, 10);
  t.equal(log.events.at(-1)?.index, 49);
  logEvent(log, { atMs: 50, name: '', data: 'y'.repeat(3_000_000) });
  t.equal(log.events.length, 1);
  t.equal(log.events[0]?.data.length, 1_048_576);
  t.equal(log.characters, 1_048_576);
});

test('the refusal of every protocol is read', async (t) => {
  const { url } = await startGateway(t, { demo: 'simulator' });
  for (const protocol of textProtocols) {
    const choice = { kind: 'chat', protocol, settings: settingsWith({ model: 'no-such' }) } as const;
    const response = await send(url, requestOf(choice, 'Hello', []));
    t.equal(response.status, 404);
    const refusal = readRefusal(response.status, await response.text());
    t.match(refusal.message, 'no-such');
    t.match(refusal.kind, /not_found|NOT_FOUND/);
  }
  for (const protocol of ['compat', 'generic', 'vendork', 'vendorj'] as const) {
    const settings = { model: 'no-such', size: '1280x720', seconds: 5 };
    const response = await send(url, requestOf({ kind: 'video', protocol, settings }, 'A lighthouse', []));
    t.match(readRefusal(response.status, await response.text()).message, 'no-such', protocol);
  }
});

test('a refusal that is no JSON is told by its status', async (t) => {
  const none = { message: 'The gateway answered 502.', kind: null, param: null };
  t.strictSame(readRefusal(502, '<html>Bad gateway</html>'), none);
  t.strictSame(readRefusal(502, ''), none);
  t.strictSame(readRefusal(502, '[1]'), none);
  t.match(readRefusal(400, '{"error":"no"}'), { message: 'no' });
  t.match(readRefusal(400, '{"error":{"message":"m","param":"messages[0]","code":400}}'), {
    message: 'm',
    kind: null,
    param: 'messages[0]',
  });
});

test('the speed of an answer is that of its tokens while they came', async (t) => {
  const tokens = { input: 5, output: 30, cached: 0, reasoning: 0 };
  const record = { ...emptyRecord(), tokens, totalMs: 1500, firstTextMs: 500 };
  t.equal(tokensPerSecond(record), 30);
  t.equal(tokensPerSecond({ ...record, firstTextMs: null }), 20);
  t.equal(tokensPerSecond({ ...record, firstTextMs: 1500 }), 20, 'an answer that came at once');
  t.equal(tokensPerSecond({ ...record, tokens: null }), null);
  t.equal(tokensPerSecond({ ...record, totalMs: null }), null);
  t.equal(tokensPerSecond({ ...record, tokens: { ...tokens, output: 0 } }), null);
});

test('objects are merged, and everything else is replaced', async (t) => {
  const base = { a: { b: 1, c: [1, 2] }, d: 'x' };
  t.strictSame(merged(base, { a: { c: [3], e: null }, d: { f: true } }), {
    a: { b: 1, c: [3], e: null },
    d: { f: true },
  });
  t.strictSame(base, { a: { b: 1, c: [1, 2] }, d: 'x' });
});

test('the images of an answer are told by their first bytes', async (t) => {
  const data = [
    { b64_json: 'iVBORw0KGgoAAA' },
    { b64_json: '/9j/4AAQ' },
    { b64_json: 'AAAA' },
    { url: 'data:,' },
    3,
  ];
  t.strictSame(readImages({ data, output_format: 'webp' }), [
    { kind: 'bytes', base64: 'iVBORw0KGgoAAA', type: 'image/png' },
    { kind: 'bytes', base64: '/9j/4AAQ', type: 'image/jpeg' },
    { kind: 'bytes', base64: 'AAAA', type: 'image/webp' },
    { kind: 'url', url: 'data:,' },
  ]);
  t.strictSame(readImages(null), []);
});

test('the images of a generateContent answer are those of its parts that are no thoughts', async (t) => {
  const inline = (mimeType: string, data: unknown, more: object = {}) => ({
    inlineData: { mimeType, data },
    ...more,
  });
  const parts = [
    { text: 'Here it is.' },
    inline('image/png', 'iVBORw0KGgoAAA', { thought: true }),
    inline('image/png', '/9j/4AAQ'),
    inline('image/avif', 'AAAA'),
    inline('audio/wav', 'UklGRAAA'),
    inline('image/png', 3),
    null,
  ];
  t.strictSame(readImages({ candidates: [{ content: { parts } }, { content: {} }, null] }), [
    { kind: 'bytes', base64: '/9j/4AAQ', type: 'image/jpeg' },
    { kind: 'bytes', base64: 'AAAA', type: 'image/avif' },
  ]);
});
