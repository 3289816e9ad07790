import { test } from 'tap';
import { startGateway } from '../support/gateway.js';
import { openClient, startRealtimeUpstream } from '../support/realtime.js';

const key = 'sk-own-upstream-key-Zq81xW';
const error = { code: 'invalid_api_key', message: 'Incorrect API key provided: sk-own***' };
const text = (event: object): string => JSON.stringify(event);
const done = text({ type: 'response.done', response: { status_details: { type: 'failed', error } } });
const asError = text({ type: 'error', error });

/** What tells of our account, in whatever form. */
const telling: readonly (readonly [string, string | Buffer])[] = [
  ['a type with a dot', text({ type: 'session.error', error })],
  ['a type with a dot, bare', text({ type: 'session.error', ...error })],
  ['an error beside a session', text({ type: 'session.updated', session: {}, error })],
  ['errors beside a session', text({ type: 'session.updated', session: {}, errors: [error] })],
  ['an escaped name', done.replace('"error"', '"\\u0065rror"')],
  ['two types', `{"type":"response.audio.delta",${asError.slice(1)}`],
  ['two types, the other way', `{"type":"response.audio.delta","error":${text(error)},"type":"error"}`],
  ['a byte order mark', `\ufeff${asError}`],
  ['a line feed', `\n${asError}`],
  ['bytes behind a byte order mark', Buffer.from(`\ufeff${asError}`)],
  ['bytes behind a line feed', Buffer.from(`\n${asError}`)],
  ['a text as bytes behind a line feed', Buffer.from(`\n${error.message}`)],
  ['our key in an event of the protocol', text({ type: 'response.audio.delta', delta: key })],
  ['our key in an event that is long', text({ type: 'x.y', pad: 'x'.repeat(2 * 1024 * 1024), key })],
  ['our key in bytes', Buffer.from(`\0\x01${key}\0`)],
  ['our key in bytes of UTF-16', Buffer.from(text({ key }), 'utf16le')],
];

test('no message of a session tells of our account', async (t) => {
  for (const [how, message] of telling) {
    const upstream = await startRealtimeUpstream(t, ({ socket }) => socket.send(message));
    const { port, lines } = await startGateway(t, {
      protocols: ['realtime'],
      upstreams: [upstream.url],
      config: { upstreams: { u0: { kind: 'chat', baseUrl: upstream.url, apiKeys: [key] } } },
    });
    const client = await openClient(t, port);
    const { code, reason } = await client.closed;
    t.equal(code, 1011, how);
    const heard = client.received.join() + reason;
    t.match(heard, /does not accept the gateway's account/, how);
    t.notMatch(heard, /Zq81xW|sk-own/, how);
    t.notMatch(JSON.stringify(lines), /Zq81xW/, how);
  }
});

test('what only speaks of errors passes', async (t) => {
  const messages = [
    text({ type: 'response.text.delta', delta: 'an "error" is \u0007, Incorrect API key provided' }),
    text({ type: 'session.updated', session: {}, error: null }),
    text({
      type: 'response.done',
      response: { status_details: { error: { code: 'busy', message: 'Busy.' } } },
    }),
    text({ type: 'session.error', error: { code: 'busy', message: 'Busy.' } }),
    Buffer.from('{\x01\x02'),
    Buffer.from('sound'),
  ];
  const upstream = await startRealtimeUpstream(t, ({ socket }) => {
    for (const message of messages) socket.send(message);
  });
  const { port } = await startGateway(t, { protocols: ['realtime'], upstreams: [upstream.url] });
  const client = await openClient(t, port);
  await client.until(messages.length);
  t.same(client.received, messages);
});

test('no close reason names our account', async (t) => {
  for (const [given, isOurs] of [
    ['Account suspended: acme-77', true],
    ['Account overdue', true],
    [`bye ${Buffer.from(key).toString('base64')}`, true],
    ['The session is over.', false],
  ] as const) {
    const upstream = await startRealtimeUpstream(t, ({ socket }) => socket.close(4001, given));
    const { port } = await startGateway(t, {
      protocols: ['realtime'],
      upstreams: [upstream.url],
      config: { upstreams: { u0: { kind: 'chat', baseUrl: upstream.url, apiKeys: [key] } } },
    });
    const { code, reason } = await (await openClient(t, port)).closed;
    t.equal(code, isOurs ? 1011 : 4001, given);
    t.equal(reason.includes(given), !isOurs, given);
  }
});
