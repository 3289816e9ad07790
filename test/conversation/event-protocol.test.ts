import { test } from 'tap';
import { isServersOwn, isSignOfLife, protocolOfEvent } from '../../src/conversation/event-protocol.js';

test('events of each protocol are known, and those of none are not', async (t) => {
  const cases: [string | null, object, string | null][] = [
    [null, { choices: [] }, 'chat'],
    [null, { object: 'chat.completion.chunk' }, 'chat'],
    [null, { object: 'text_completion' }, 'chat'],
    ['response.created', {}, 'responses'],
    ['message_start', {}, 'messages'],
    ['content_block_delta', {}, 'messages'],
    [null, { candidates: [] }, 'generateContent'],
    [null, { promptFeedback: {} }, 'generateContent'],
    ['codex.rate_limits', { rate_limits: {} }, null],
    ['ping', {}, null],
    ['responses', {}, null],
    [null, {}, null],
    [null, { object: {} }, null],
  ];
  for (const [type, body, protocol] of cases)
    t.equal(protocolOfEvent(type, body as never), protocol, JSON.stringify([type, body]));
});

test('a server’s own are those that have a type, are no protocol’s, and may be no error', async (t) => {
  const cases: [string | null, object, boolean][] = [
    ['codex.rate_limits', {}, true],
    ['ping', {}, true],
    [null, {}, false],
    [null, { message: 'x' }, false],
    ['message_start', {}, false],
    ['x', { choices: [] }, false],
    ['error', {}, false],
    ['AuthenticationError', {}, false],
    ['x', { object: 'error' }, false],
    ['overloaded', { code: 503, message: 'x' }, false],
  ];
  for (const [type, body, expected] of cases)
    t.equal(isServersOwn(type, body as never), expected, JSON.stringify([type, body]));
});

test('without a JSON object, an event says nothing if it has no data or the name of a sign of life', async (t) => {
  const cases: [string | null, string, boolean][] = [
    [null, '', true],
    ['message_delta', ' ', true],
    ['heartbeat', 'ok', true],
    ['keepalive', 'null', true],
    ['Keep-Alive', 'x', true],
    [null, ' ping', true],
    ['message', 'heartbeat', true],
    [null, 'ping failed', false],
    ['exception', 'Overloaded', false],
    [null, 'ok', false],
    ['message', 'ok', false],
    ['content_block_delta', '{"type":', false],
    ['response.completed', '{"type":', false],
    ['error', 'Internal Server Error', false],
    ['StreamError', 'x', false],
    ['error', 'ping', false],
    ['error', ' ', true],
  ];
  for (const [event, data, expected] of cases)
    t.equal(isSignOfLife(event, data), expected, JSON.stringify([event, data]));
});
