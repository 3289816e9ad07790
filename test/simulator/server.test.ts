import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import type { SimulatorRequest } from '../../src/simulator/http/reply.js';
import { eventually } from '../support/eventually.js';
import { simulate } from '../support/simulator.js';
import { ask, chat } from './ask.js';

const entry = fileURLToPath(new URL('../../src/simulator/main.js', import.meta.url));

test('the hook and the last request have the very bytes and header names that came', async (t) => {
  const seen: SimulatorRequest[] = [];
  const simulator = await simulate(t, { onRequest: (request) => seen.push(request) });
  const body =
    '{ "model" : "sim-text",\n"messages":[{"role":"user","content":"\\u00e9 1e400"}], "big": 12345678901234567890 }';
  await ask(simulator, body, { 'X-Odd-Case': 'Value' });
  t.equal(seen[0]?.body.toString(), body);
  t.ok(seen[0]?.rawHeaders.includes('X-Odd-Case'));
  const answer = await fetch(`http://127.0.0.1:${simulator.port}/__simulator/last`);
  const last = (await answer.json()) as { body: string };
  t.equal(Buffer.from(last.body, 'base64').toString(), body);
  t.match(last, { method: 'POST', target: '/v1/chat/completions', rawHeaders: /X-Odd-Case/ });
});

test('the state counts requests, open ones and cancelled ones, and not the questions for it', async (t) => {
  const simulator = await simulate(t, { tokensPerSecond: 1 });
  const text = JSON.stringify(chat('a long enough answer', { stream: true }));
  const socket = connect(simulator.port, '127.0.0.1');
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
  );
  await once(socket, 'data');
  const state = async (): Promise<unknown> =>
    (await fetch(`http://127.0.0.1:${simulator.port}/__simulator/state`)).json();
  const others = { videosMade: 0, polls: 0, openSessions: 0, totalSessions: 0 };
  t.strictSame(await state(), { openRequests: 1, totalRequests: 1, cancelledRequests: 0, ...others });
  socket.destroy();
  await eventually(() => simulator.state().openRequests === 0);
  t.strictSame(await state(), { openRequests: 0, totalRequests: 1, cancelledRequests: 1, ...others });
});

test('models are listed, another path is 404, another method 405', async (t) => {
  const simulator = await simulate(t);
  const get = async (path: string, method = 'GET'): Promise<{ status: number; body: object }> => {
    const answer = await fetch(`http://127.0.0.1:${simulator.port}${path}`, { method });
    return { status: answer.status, body: (await answer.json()) as object };
  };
  t.match(await get('/v1/models'), {
    status: 200,
    body: { object: 'list', data: [{ id: 'sim-text', object: 'model' }] },
  });
  t.match(await get('/v1/nothing'), { status: 404, body: { error: { code: 'unknown_url' } } });
  t.match(await get('/v1/chat/completions'), {
    status: 405,
    body: { error: { code: 'method_not_allowed' } },
  });
});

test('as a child it reports its port, outlives an interrupt and its parent, and ends when nobody uses it', async (t) => {
  const child = fork(entry, { env: { ...process.env, SIMULATOR_PORT: '0', SIMULATOR_LATENCY_MS: '0' } });
  t.teardown(() => child.kill('SIGKILL'));
  const [message] = await once(child, 'message');
  t.match(message, { type: 'listening', port: Number });
  child.kill('SIGINT');
  const answer = await fetch(`http://127.0.0.1:${message.port}/v1/models`);
  t.equal(answer.status, 200);
  const exited = once(child, 'exit');
  child.disconnect();
  t.equal((await fetch(`http://127.0.0.1:${message.port}/v1/models`)).status, 200);
  t.strictSame(await exited, [0, null]);
});

test('it is unused once nobody has been connected for a while', async (t) => {
  const simulator = await simulate(t);
  const socket = connect(simulator.port, '127.0.0.1');
  await once(socket, 'connect');
  let isUnused = false;
  const unused = new Promise<void>((resolve) => {
    simulator.whenUnused(20, () => {
      isUnused = true;
      resolve();
    });
  });
  await pause(100);
  t.notOk(isUnused, 'while somebody is connected');
  socket.destroy();
  await unused;
});

test('on its own it prints its address and ends on SIGTERM', async (t) => {
  const child = spawn(process.execPath, [entry], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(() => child.kill('SIGKILL'));
  const [line] = await once(child.stdout, 'data');
  t.match(String(line), /^listening 127\.0\.0\.1:\d+\n$/);
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  t.strictSame(await exited, [0, null]);
});

test('a setting that is not a number ends it with an explanation', async (t) => {
  const env = { ...process.env, SIMULATOR_LATENCY_MS: 'soon' };
  const child = spawn(process.execPath, [entry], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const exited = once(child, 'exit');
  const [words] = await once(child.stderr, 'data');
  t.match(String(words), /SIMULATOR_LATENCY_MS/);
  t.strictSame(await exited, [1, null]);
});
