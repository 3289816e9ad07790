import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { test } from 'tap';
import { testKey } from '../../support/gateway.js';
import { exchange } from '../../support/raw-client.js';
import { post, startTranslated, wholeAnswers } from '../../support/translated.js';
import { completion, jsonAnswer } from '../../support/upstream.js';

/* RFC 9110 section 7.6.1: what belongs to one connection is passed on in neither direction. */

const chatPath = '/v1/chat/completions';
const chatBody = { model: 'm', messages: [{ role: 'user', content: 'hi' }] };
const messagesBody = { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] };

/** Headers that upstreams are sent, unless `connection` names them. */
const endToEnd = [
  'user-agent: curl/8',
  'accept: */*',
  'traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  'x-title: app',
  'session_id: s-1',
  'x-codex-of-the-future: 1',
  'openai-beta: x=1',
  'idempotency-key: k-1',
  'x-tenant: a',
];
const names = endToEnd.map((line) => line.slice(0, line.indexOf(':')));
const endToEndLines = endToEnd.map((line) => `${line}\r\n`).join('');
const chat = {
  kind: 'chat',
  answer: jsonAnswer(200, completion),
  upstream: { forwardHeaders: ['x-tenant'] },
};

test('headers of one connection are not passed to an upstream', async (t) => {
  const running = await startTranslated(t, chat);
  const hops =
    'te: trailers, close\r\nkeep-alive: timeout=5\r\nproxy-connection: keep-alive\r\ntrailer: x-title\r\n' +
    'proxy-authorization: Basic eA==\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQ\r\n' +
    'connection: te, Upgrade, HTTP2-Settings\r\n';
  const answer = await post(running.port, chatPath, chatBody, hops + endToEndLines);
  t.equal(answer.status, 200, 'a protocol that is offered beside a body is not switched to');
  const head = running.upstream.requests[0]?.head ?? '';
  t.notMatch(head, /\r\n(?:te|keep-alive|proxy-[a-z]+|trailer|upgrade|http2-settings|connection):/i);
  for (const name of names) t.match(head, new RegExp(`\\r\\n${name}: `), `${name} is, as nothing names it`);
});

test('headers that `connection` names are not passed to an upstream, whoever else sent them before', async (t) => {
  const running = await startTranslated(t, chat);
  await post(running.port, chatPath, chatBody, endToEndLines);
  for (const connection of [
    `connection: keep-alive, ${names.join(', ')}\r\n`,
    `connection: ${names.map((name) => name.toUpperCase()).join(' ,,\t')}\r\n`,
    names.map((name) => `connection: ${name}\r\n`).join(''),
  ]) {
    const answer = await post(running.port, chatPath, chatBody, connection + endToEndLines);
    t.equal(answer.status, 200);
    const head = running.upstream.requests.at(-1)?.head ?? '';
    for (const name of names) t.notMatch(head, new RegExp(`\\r\\n${name}: `), name);
  }
  await post(running.port, chatPath, chatBody, `connection: x-title\r\n${endToEndLines}`);
  const head = running.upstream.requests.at(-1)?.head ?? '';
  t.notMatch(head, /\r\nx-title: /);
  t.match(head, /\r\nsession_id: s-1\r\n/, 'the others are');
  await post(running.port, chatPath, chatBody, endToEndLines);
  t.match(running.upstream.requests.at(-1)?.head, /\r\nx-title: app\r\n/, 'nor is anything kept of it');
});

test('a beta and a version that `connection` names are not passed to an upstream either', async (t) => {
  const answer = jsonAnswer(200, wholeAnswers.messages ?? '');
  const running = await startTranslated(t, { kind: 'messages', answer });
  const beta = 'connection: anthropic-beta\r\nanthropic-beta: context-1m-2025-08-07\r\n';
  t.equal((await post(running.port, '/v1/messages', messagesBody, beta)).status, 200);
  t.notMatch(running.upstream.requests[0]?.head, /anthropic-beta/);
  const version = await post(running.port, '/v1/messages', messagesBody, 'connection: anthropic-version\r\n');
  t.equal(version.status, 400, 'as without the header, which is required');
});

test('what the gateway reads itself, and what it adds, is not for a client to strike out', async (t) => {
  const running = await startTranslated(t, {
    kind: 'chat',
    answer: jsonAnswer(200, completion),
    upstream: { apiKeys: ['sk-ours'], headers: { 'x-title': 'ours' } },
  });
  const own =
    'authorization, content-type, content-length, host, x-title, x-request-id, accept-encoding, transfer-encoding';
  const answer = await post(running.port, chatPath, chatBody, `connection: ${own}\r\nx-title: theirs\r\n`);
  t.equal(answer.status, 200);
  const request = running.upstream.requests[0];
  for (const line of [
    'authorization: Bearer sk-ours',
    'x-title: ours',
    'content-type: application/json',
    `host: 127.0.0.1:${running.upstream.port}`,
    'accept-encoding: identity',
    `content-length: ${request?.body.length}`,
  ])
    t.match(request?.head, new RegExp(`\\r\\n${line}(?:\\r\\n|$)`), line);
  t.match(request?.head, /\r\nx-request-id: req_/);
});

test('a connection closes after its answer if any `connection` line says so', async (t) => {
  const running = await startTranslated(t, chat);
  for (const lines of ['close\r\nconnection: x-title', 'x-title\r\nconnection: close', 'x-title, Close']) {
    const answer = await post(running.port, chatPath, chatBody, `connection: ${lines}\r\n`);
    t.match(answer.head, /\r\nconnection: close/i, lines);
    t.notMatch(answer.head, /\r\nkeep-alive:/i);
  }
});

test('headers of an answer that its `connection` names are not passed to the client', async (t) => {
  const fields =
    'cf-ray: 9-FRA\r\nopenai-model: x\r\nx-request-id: up-1\r\nx-served-by: a7\r\nretry-after: 9\r\n';
  const running = await startTranslated(t, {
    kind: 'chat',
    answer: jsonAnswer(
      200,
      completion,
      `${fields}connection: keep-alive, CF-Ray\r\nconnection: x-served-by ,x-request-id,retry-after\r\n`,
    ),
    upstream: { returnHeaders: ['x-served-by'] },
  });
  const { head, status } = await post(running.port, chatPath, chatBody);
  t.equal(status, 200);
  t.notMatch(head, /\r\n(?:cf-ray|x-served-by|x-upstream-request-id|retry-after):/i);
  t.match(head, /\r\nopenai-model: x/, 'one that is not named');
  running.upstream.answer = jsonAnswer(200, completion, `${fields}connection: content-type, keep-alive\r\n`);
  const named = await post(running.port, chatPath, chatBody);
  t.match(named.head, /\r\ncontent-type: application\/json/, 'what says how to read the body is read here');
  t.match(named.head, /\r\ncf-ray: 9-FRA/);
});

test('several lines of codings are one list', async (t) => {
  const running = await startTranslated(t, chat);
  const body = '{}';
  for (const lines of ['gzip\r\ncontent-encoding: identity', 'gzip, br']) {
    const answer = await exchange(
      running.port,
      `POST ${chatPath} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\ncontent-type: application/json\r\n` +
        `content-encoding: ${lines}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    t.equal(answer.status, 415, lines);
  }
  t.equal(running.upstream.requests.length, 0);
});

test('a client that waits for 100 is told to send its body, and the upstream is not asked for one', async (t) => {
  const running = await startTranslated(t, chat);
  const headers = {
    authorization: `Bearer ${testKey}`,
    'content-type': 'application/json',
    expect: '100-continue',
  };
  const call = request({ port: running.port, method: 'POST', path: chatPath, headers });
  call.on('continue', () => call.end(JSON.stringify(chatBody)));
  call.flushHeaders();
  const [answer] = (await once(call, 'response')) as [IncomingMessage];
  answer.resume();
  t.equal(answer.statusCode, 200);
  t.notMatch(running.upstream.requests[0]?.head, /\r\nexpect:/i);
});
