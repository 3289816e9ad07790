import { test } from 'tap';
import { startGateway } from '../support/gateway.js';
import { connect, create } from '../support/responses-socket.js';

test('the message that ended a worker gets its error, and the worker is the same after it', {
  timeout: 120_000,
}, async (t) => {
  const gateway = await startGateway(t, { workers: 1 });
  const before = gateway.workerPids();
  const socket = await connect(t, gateway.baseUrl);
  socket.send(`{"type":"response.create","previous_response_id":"${'x'.repeat(300)}\\q"}`);
  const [event] = await socket.answer();
  t.equal(event?.type, 'error');
  t.match(String(event?.error?.message), /not valid JSON: at byte \d+/);
  socket.send(create({ input: 'hello' }));
  t.equal((await socket.answer()).at(-1)?.type, 'response.completed');
  t.strictSame(gateway.workerPids(), before);
});
