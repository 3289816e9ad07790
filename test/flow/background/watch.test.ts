import { performance } from 'node:perf_hooks';
import { type Test, test } from 'tap';
import { UpstreamWatch, type Watched } from '../../../src/flow/background/watch.js';
import type { Services } from '../../../src/flow/services.js';

const ids = Array.from({ length: 200 }, (_, at) => `id-${at}`);

/** A watch of them all, whose upstreams answer when they are released. */
function watchAll(t: Test) {
  const begun: string[] = [];
  let release = (): void => {};
  const watched: Watched = {
    mayBeAny: () => true,
    async page(limit, from) {
      const start = from === null ? 0 : Number(from);
      const end = start + limit;
      return { ids: ids.slice(start, end), next: end < ids.length ? String(end) : null };
    },
    // Each of an upstream of its own, so that only the bound of all of them holds.
    find: async (id) => ({
      ageMs: 0,
      upstream: id,
      claim: async () => true,
      work: () => {
        begun.push(id);
        const waiting = release;
        return new Promise<void>((resolve) => {
          release = () => {
            waiting();
            resolve();
          };
        });
      },
    }),
  };
  const watch = new UpstreamWatch({ reportFault: t.fail } as unknown as Services, watched);
  t.teardown(() => watch.close());
  const answer = async () => {
    release();
    await new Promise(setImmediate);
  };
  return { watch, begun, answer };
}

test('a round that is asking about as much as it may goes on where it stopped', async (t) => {
  const { watch, begun, answer } = watchAll(t);
  await watch.tick();
  t.equal(begun.length, 64);
  await watch.tick();
  t.equal(begun.length, 64);
  await answer();
  await watch.tick();
  t.strictSame(begun.slice(64, 100), ids.slice(64, 100), 'the rest of the first page');
});

test('later pages have their turn though upstreams are so slow that the first page is due again', async (t) => {
  let now = 0;
  t.intercept(performance, 'now', { value: () => now });
  const { watch, begun, answer } = watchAll(t);
  for (let rounds = 0; rounds < 4; rounds++) {
    await watch.tick();
    await answer();
    now += 10_000;
  }
  t.strictSame(begun, ids);
});
