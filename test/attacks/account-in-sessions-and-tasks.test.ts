import { test } from 'tap';
import { eventually } from '../support/eventually.js';
import { startGateway } from '../support/gateway.js';
import { clientFormats } from '../support/media/client-formats.js';
import { ask, mediaConfig } from '../support/media/gateway.js';
import { onlyClientsAsk } from '../support/media/videos.js';
import { openClient, refusalOf, startRealtimeUpstream } from '../support/realtime.js';
import { jsonAnswer, startRawUpstream } from '../support/upstream.js';
import { accountAnswers, leak, leakyLines, organisation, quotedKey } from './account-answers.js';

const words = `Incorrect API key provided: ${quotedKey} of ${organisation}`;

test('an upgrade that is refused for our account is 502 in our words, without its headers', async (t) => {
  let answer = '';
  const upstream = await startRealtimeUpstream(t, undefined, (_request, socket) => {
    socket.end(answer);
    return true;
  });
  const { port, lines } = await startGateway(t, { upstreams: [upstream.url], protocols: ['realtime'] });
  for (const [what, status, body] of accountAnswers) {
    answer = jsonAnswer(status, body, `${leakyLines}connection: close\r\n`);
    const refused = await refusalOf(t, port);
    t.equal(refused.status, 502, what);
    t.match(refused.body, /does not accept the gateway's account/, what);
    t.notMatch(refused.body + JSON.stringify(refused.headers), leak, what);
    t.notOk(refused.headers['www-authenticate'] ?? refused.headers['openai-organization'], what);
  }
  answer = jsonAnswer(503, '<html>busy</html>', 'retry-after: 3\r\nconnection: close\r\n');
  const page = await refusalOf(t, port);
  t.equal(page.status, 503);
  t.match(JSON.parse(page.body), { error: { message: String } });
  t.equal(page.headers['retry-after'], '3');
  t.notMatch(JSON.stringify(lines), leak);
});

const events = [
  {
    type: 'error',
    event_id: 'e',
    error: { type: 'invalid_request_error', code: 'invalid_api_key', message: words },
  },
  {
    type: 'response.done',
    response: {
      id: 'r',
      status: 'failed',
      status_details: {
        type: 'failed',
        error: { type: 'insufficient_quota', code: 'insufficient_quota', message: words },
      },
    },
  },
];

test('an event of a session that speaks of our account ends it in our words', async (t) => {
  for (const event of events) {
    const upstream = await startRealtimeUpstream(t, ({ socket }) => socket.send(JSON.stringify(event)));
    const { port, lines } = await startGateway(t, { upstreams: [upstream.url], protocols: ['realtime'] });
    const client = await openClient(t, port);
    const { code, reason } = await client.closed;
    t.equal(code, 1011);
    const heard = client.received.join() + reason;
    t.match(heard, /does not accept the gateway's account/);
    t.notMatch(heard, leak);
    t.notMatch(JSON.stringify(lines), leak);
    t.ok(lines.some(({ msg }) => msg === "an upstream refused the gateway's API key or account"));
  }
});

test('a close reason that speaks of our account is not handed on, any other is', async (t) => {
  for (const [given, isOurs] of [
    [`invalid_request_error.invalid_api_key`, true],
    [words, true],
    ['The session is over.', false],
  ] as const) {
    const upstream = await startRealtimeUpstream(t, ({ socket }) => socket.close(4001, given));
    const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['realtime'] });
    const { code, reason } = await (await openClient(t, port)).closed;
    t.equal(code, isOurs ? 1011 : 4001, given);
    t.equal(reason.includes(given), !isOurs, given);
    t.notMatch(reason, leak);
  }
});

test('a poll that is refused for our account fails no task, and tells nothing', async (t) => {
  onlyClientsAsk(t);
  const bodies = [
    ...accountAnswers.map(([, status, body]) => [status, body] as const),
    [401, JSON.stringify({ id: 'theirs', status: 'failed', error: { code: 'x', message: words } })],
    [403, JSON.stringify({ id: 'theirs', status: 'error', error: { message: words } })],
  ] as const;
  for (const [status, body] of bodies) {
    let polls = 0;
    const upstream = await startRawUpstream(t, ({ head, socket }) => {
      if (head.startsWith('POST')) socket.write(jsonAnswer(200, '{"id":"theirs","status":"queued"}'));
      else if (polls++ === 0) socket.write(jsonAnswer(status, body, leakyLines));
      else socket.write(jsonAnswer(200, '{"id":"theirs","status":"completed"}'));
    });
    const gateway = await startGateway(t, {
      config: mediaConfig(t, {
        upstreams: { u: { baseUrl: upstream.url } },
        models: { m: { protocols: ['video'], targets: [{ upstream: 'u' }] } },
      }),
    });
    const [clientFormat] = clientFormats;
    if (clientFormat === undefined) throw new Error('no client format');
    const id = clientFormat.idOf(await clientFormat.create(gateway, { model: 'm', prompt: 'a' }));
    const first = await clientFormat.show(gateway, id);
    t.equal(first.state, 'queued', `${status} ${body}`);
    t.notMatch(first.heard.text, leak);
    const { state } = await eventually(() => clientFormat.show(gateway, id), {
      fits: (seen) => seen.state !== 'queued',
      everyMs: 10,
    });
    t.equal(state, 'completed', 'the task goes on');
    t.notMatch(JSON.stringify(gateway.lines), leak);
    await gateway.gateway.close();
    await upstream.close();
  }
});

test('the content of a task that our account may not have is 502 in our words', async (t) => {
  for (const [status, body] of [
    [401, JSON.stringify({ error: { message: words } })],
    [402, words],
    [403, `<html>${organisation}</html>`],
    [200, `<!doctype html><title>${organisation}</title>`],
  ] as const) {
    const upstream = await startRawUpstream(t, ({ head, socket }) => {
      const type = body.startsWith('<') ? 'text/html' : 'application/json';
      if (!head.includes('/content')) socket.write(jsonAnswer(200, '{"id":"theirs","status":"completed"}'));
      else
        socket.write(
          `HTTP/1.1 ${status} X\r\ncontent-type: ${type}\r\n${leakyLines}content-length: ${body.length}\r\n\r\n${body}`,
        );
    });
    const gateway = await startGateway(t, {
      config: mediaConfig(t, {
        upstreams: { u: { baseUrl: upstream.url } },
        models: { m: { protocols: ['video'], targets: [{ upstream: 'u' }] } },
      }),
    });
    const [clientFormat] = clientFormats;
    if (clientFormat === undefined) throw new Error('no client format');
    const id = clientFormat.idOf(await clientFormat.create(gateway, { model: 'm', prompt: 'a' }));
    const heard = await ask(gateway, 'GET', `/v1/videos/${id}/content`);
    t.equal(heard.status, 502, `${status} ${heard.text}`);
    t.notMatch(heard.text + JSON.stringify([...heard.headers]), leak);
    t.equal((await ask(gateway, 'HEAD', `/v1/videos/${id}/content`)).status, 502);
    t.notMatch(JSON.stringify(gateway.lines), leak);
    await gateway.gateway.close();
    await upstream.close();
  }
});
