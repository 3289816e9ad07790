import { PassThrough, Writable } from 'node:stream';
import { setTimeout } from 'node:timers/promises';
import { pino } from 'pino';
import { test } from 'tap';
import { createLiveStream, type LiveSources } from '../../src/admin/live-stream.js';
import { GatewayError } from '../../src/errors.js';
import type { HistoryView, LiveState } from '../../src/metrics/live-state.js';
import { eventually } from '../support/eventually.js';

const log = pino({ level: 'silent' });
const point = (at: number) => ({ at }) as HistoryView;
const state = (at: number) => ({ at }) as LiveState;

function sources(given: Partial<LiveSources> = {}): LiveSources {
  return { history: () => [], state: async () => state(1), log, ...given };
}

/** A viewer that reads, with the names and the data of the events that it was told. */
function reader() {
  const stream = new PassThrough();
  const events: (readonly [event: string, data: unknown])[] = [];
  stream.setEncoding('utf8').on('data', (text: string) => {
    for (const block of text.split('\n\n').slice(0, -1)) {
      const [, event = '', data = ''] = /^event: (.*)\ndata: (.*)$/.exec(block) ?? [];
      events.push([event, JSON.parse(data)]);
    }
  });
  const until = async (count: number) => {
    await eventually(() => events.length >= count);
    return events;
  };
  return { stream, events, until };
}

test('a viewer is told the history, a state at once, and every point', async (t) => {
  const live = createLiveStream(sources({ history: () => [point(1), point(2)] }));
  t.teardown(() => live.close());
  const { stream, until } = reader();
  live.watch(stream);
  await until(2);
  live.point(point(3));
  t.same((await until(3)).slice(0, 3), [
    ['history', [point(1), point(2)]],
    ['state', state(1)],
    ['point', point(3)],
  ]);
});

test('one state is made for all viewers, one after another, and none while nobody looks', async (t) => {
  let asked = 0;
  const live = createLiveStream(sources({ state: async () => state(++asked) }), 2000);
  t.teardown(() => live.close());
  live.point(point(1));
  await setTimeout(50);
  t.equal(asked, 0);
  const viewers = [reader(), reader(), reader()];
  for (const { stream } of viewers) live.watch(stream);
  for (const { until } of viewers) t.same((await until(2))[1], ['state', state(1)]);
  const late = reader();
  live.watch(late.stream);
  t.same((await late.until(2))[1], ['state', state(1)], 'who comes later hears the last one');
  for (const { until } of viewers) t.same((await until(3))[2], ['state', state(2)]);
  t.ok(asked < viewers.length, `${asked} for all`);
  for (const { stream } of [...viewers, late]) stream.destroy();
  const before = asked;
  await setTimeout(2500);
  t.equal(asked, before);
  const again = reader();
  live.watch(again.stream);
  t.same((await again.until(2))[1], ['state', state(before + 1)], 'what is old is not told');
});

test('a state that cannot be made is not the end', async (t) => {
  let asked = 0;
  const live = createLiveStream(
    sources({
      state: async () => {
        if (++asked === 1) throw new Error('lost');
        return state(asked);
      },
    }),
    50,
  );
  t.teardown(() => live.close());
  const { stream, until } = reader();
  live.watch(stream);
  t.same((await until(2))[1], ['state', state(2)]);
});

test('who does not read is cut off, and the others hear on', async (t) => {
  const live = createLiveStream(sources());
  t.teardown(() => live.close());
  const stuck = new Writable({ write() {} });
  const { stream, events, until } = reader();
  live.watch(stuck);
  live.watch(stream);
  const large = { at: 1, note: 'x'.repeat(100_000) } as unknown as HistoryView;
  for (let i = 0; i < 9; i++) live.point(large);
  t.notOk(stuck.destroyed);
  for (let i = 0; i < 3; i++) {
    live.point(large);
    await setTimeout(5);
  }
  t.ok(stuck.destroyed);
  await until(14);
  t.equal(events.filter(([event]) => event === 'point').length, 12);
  t.notOk(stream.destroyed);
});

test('there is room for sixteen, and again when one has left', async (t) => {
  const live = createLiveStream(sources());
  t.teardown(() => live.close());
  const viewers = Array.from({ length: 16 }, () => reader().stream);
  const full = new GatewayError('overloaded', '16 consoles are open, which is the maximum.', {
    retryAfter: 5,
  });
  for (const viewer of viewers) {
    live.checkRoom();
    live.watch(viewer);
  }
  t.throws(() => live.checkRoom(), full);
  t.throws(() => live.watch(reader().stream), full);
  viewers[3]?.destroy();
  await setTimeout(5);
  live.watch(reader().stream);
  t.throws(() => live.checkRoom(), full);
});

test('at the end all viewers are gone, and who has left already is not told', async (t) => {
  let asked = 0;
  const live = createLiveStream(sources({ state: async () => state(++asked) }), 50);
  const gone = reader();
  gone.stream.destroy();
  live.watch(gone.stream);
  t.equal(asked, 0);
  const { stream } = reader();
  live.watch(stream);
  live.close();
  t.ok(stream.destroyed);
  await setTimeout(300);
  t.equal(asked, 1);
});
