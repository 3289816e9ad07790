import type { IncomingMessage } from 'node:http';
import { test } from 'tap';
import { type LimitInUse, limitRoutes } from '../../src/admin/limits.js';

const request = {
  request: {} as IncomingMessage,
  query: new URLSearchParams(),
  params: {},
  signal: AbortSignal.timeout(60_000),
};

function limitOf(number: number): LimitInUse {
  const name = `key:${String(number).padStart(5, '0')}:requests`;
  return { name, kind: 'requests', limit: 1, share: 1, free: 1, inWindow: 0, used: 0, leased: new Map() };
}

test('the limits in use come by name, and of more than a thousand the first thousand', async (t) => {
  for (const count of [0, 3, 1000, 1001, 1999, 2000, 7919]) {
    // Spread, since the count is prime to the step or small.
    const inUse = Array.from({ length: count }, (_, index) =>
      limitOf((index * 104_729) % Math.max(1, count)),
    );
    const [limits] = limitRoutes(() => Promise.resolve(inUse));
    const answer = await limits?.handle(request);
    let text = '';
    if (typeof answer?.body === 'object') for await (const piece of answer.body) text += String(piece);
    const shown = JSON.parse(text) as { limits: { name: string }[]; complete: boolean };
    const names = inUse.map(({ name }) => name).sort();
    t.strictSame(
      shown.limits.map(({ name }) => name),
      names.slice(0, 1000),
      `of ${count}`,
    );
    t.equal(shown.complete, count <= 1000);
  }
});
