import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import t, { test } from 'tap';
import { WebSocket } from 'ws';
import { without } from '../simulator/media/programs.js';
import { browserFailure, openPage } from '../support/browser.js';
import { startGateway } from '../support/gateway.js';
import { closeOf } from '../support/realtime.js';
import { openEvents, respond, says, writes } from '../support/realtime-events.js';

/** A browser that has not shown the page by then never will. */
const longestWaitMs = 180_000;
const query = 'model=sim-realtime';
const keyProtocol = 'openai-insecure-api-key.sk-demo';
const answer = 'Simulated answer to: Hello there';

const gateway = await startGateway(t, { demo: 'simulator' });
const port = Number(new URL(gateway.url).port);

test('without headers, the subprotocols bring the key and choose the form', async (t) => {
  for (const [isBeta, more] of [
    [false, []],
    [true, ['openai-beta.realtime-v1']],
    [false, ['openai-organization.org-1', 'openai-project.proj_1']],
  ] as const) {
    const client = await openEvents(t, port, {
      query,
      headers: {},
      protocols: ['realtime', keyProtocol, ...more],
    });
    t.equal(client.socket.protocol, 'realtime');
    const { session } = await client.log.next('session.created');
    t.equal('modalities' in session, isBeta);
    client.send(writes(isBeta), says('Hello there'), respond);
    await client.log.next('response.done');
    const done = isBeta ? 'response.text.done' : 'response.output_text.done';
    t.equal(client.log.all(done)[0]?.text, answer);
    client.socket.close(1000, 'bye');
    t.strictSame(await client.closed, { code: 1000, reason: 'bye' });
  }
});

test('a client fails by itself when none of its subprotocols is taken', async (t) => {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/realtime?${query}`, [keyProtocol]);
  let failure = '';
  socket.on('error', (error) => {
    failure = error.message;
  });
  t.equal((await closeOf(socket)).code, 1006);
  t.match(failure, /subprotocol/);
});

interface Seen {
  readonly protocol: string;
  readonly types: readonly string[];
  readonly text: string;
  readonly close: readonly (number | string | boolean)[];
  readonly refused: { readonly opened: boolean; readonly code: number };
}

// A page of another origin, as they all are.
const script = `
const open = (key) => new WebSocket('ws://127.0.0.1:${port}/v1/realtime?${query}',
  ['realtime', 'openai-insecure-api-key.' + key, 'openai-beta.realtime-v1']);
const turn = () => new Promise((resolve) => {
  const socket = open('sk-demo');
  const seen = { types: [], text: '' };
  const send = (event) => socket.send(JSON.stringify(event));
  socket.onopen = () => {
    seen.protocol = socket.protocol;
    for (const event of ${JSON.stringify([writes(true), says('Hello there'), respond])}) send(event);
  };
  socket.onmessage = ({ data }) => {
    const event = JSON.parse(data);
    seen.types.push(event.type);
    if (event.type === 'response.text.delta') seen.text += event.delta;
    if (event.type === 'response.done') socket.close(1000, 'bye');
  };
  socket.onclose = ({ code, reason, wasClean }) => resolve({ ...seen, close: [code, reason, wasClean] });
});
const refused = () => new Promise((resolve) => {
  const socket = open('sk-wrong');
  let opened = false;
  socket.onopen = () => { opened = true; };
  socket.onclose = ({ code }) => resolve({ opened, code });
});
const seen = { ...(await turn()), refused: await refused() };
await fetch('/seen', { method: 'POST', body: JSON.stringify(seen) });
`;

test('a page in a browser gets a turn, and nothing with a wrong key', {
  skip: without('chromium'),
}, async (t) => {
  let heard: (seen: Seen) => void = () => {};
  const found = new Promise<Seen>((resolve) => {
    heard = resolve;
  });
  const pages = createServer(async (request, response) => {
    if (request.url === '/seen') heard(JSON.parse(await text(request)) as Seen);
    response.setHeader('content-type', 'text/html');
    response.end(request.url === '/' ? `<!doctype html><script type="module">${script}</script>` : '');
  });
  pages.listen(0, '127.0.0.1');
  await once(pages, 'listening');
  t.teardown(() => {
    pages.closeAllConnections();
    pages.close();
  });
  const browser = openPage(t, `http://127.0.0.1:${(pages.address() as AddressInfo).port}/`);
  const seen = await Promise.race([found, browserFailure(browser, longestWaitMs)]);
  t.equal(seen.protocol, 'realtime');
  t.strictSame(seen.types.slice(0, 3), ['session.created', 'conversation.created', 'session.updated']);
  t.equal(seen.text, answer);
  t.strictSame(seen.close, [1000, 'bye', true]);
  t.strictSame(seen.refused, { opened: false, code: 1006 });
});

t.end();
