import { test } from 'tap';
import { startRouted } from '../../support/routed.js';
import { jsonAnswer } from '../../support/upstream.js';

const answer = jsonAnswer(200, '{"choices":[{"message":{"role":"assistant","content":"hi"}}]}');

test('the log tells once that a target fails, and once that it answers again', async (t) => {
  const config = { routing: { failures: 2, openMs: 300, maxOpenMs: 300, retries: 0 } };
  const { ask, gateway } = await startRouted(
    t,
    [({ socket }, index) => socket.write(index < 2 ? jsonAnswer(500, '{"error":{"message":"x"}}') : answer)],
    { config },
  );
  const told = () => gateway.lines.filter(({ msg }) => String(msg).startsWith('breaker '));
  await ask({});
  t.strictSame(told(), []);
  await ask({});
  const fails = {
    msg: 'breaker open: the target keeps failing and is skipped for a while',
    upstream: 'u0',
    model: 'm',
    error: '500',
  };
  await gateway.line(({ msg }) => msg === fails.msg);
  t.match(told(), [fails]);
  // It is asked again once it has been left alone for long enough.
  while (told().length === 1) {
    await ask({});
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await gateway.line(({ msg }) => msg === 'breaker closed: the target answers again');
  t.match(told(), [fails, { upstream: 'u0', model: 'm' }]);
  t.equal(told().length, 2);
});

test('the line of a target that fails says how, in the words of the system, and for how long it is left alone', async (t) => {
  const config = { routing: { failures: 1, openMs: 60_000, retries: 0 } };
  const { ask, gateway } = await startRouted(t, [({ socket }) => socket.resetAndDestroy()], { config });
  await ask({});
  const told = await gateway.line(
    ({ msg }) => msg === 'breaker open: the target keeps failing and is skipped for a while',
  );
  t.match(told, { upstream: 'u0', model: 'm', error: /^reset: .*ECONNRESET/, openMs: 60_000 });
});
