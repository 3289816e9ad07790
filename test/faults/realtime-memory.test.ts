import t, { test } from 'tap';
import { cutSessions, deafClient } from '../stress/realtime.js';

test('sessions that either side cuts at any moment leave no socket behind', async (t) => {
  const figures = await cutSessions({ sessions: 30, rounds: 2, perSecond: 60, withinMs: 60_000 });
  const [before = 0, ...after] = figures.sockets;
  for (const sockets of after) t.ok(sockets <= before, `${sockets} sockets, ${before} at first`);
  t.strictSame(figures.openUpstream, [0, 0]);
  t.ok(figures.opened >= 30, `${figures.opened} were open`);
});

test('a client that does not read costs no memory, and then gets everything', async (t) => {
  const megabytes = 60;
  const figures = await deafClient({ megabytes, deafSeconds: 1 });
  // Of 60 MB, about 10 fit into the sockets on the way.
  t.ok(figures.deafMb - figures.beforeMb < 32, `from ${figures.beforeMb} to ${figures.deafMb} MB`);
  t.ok(figures.bytes >= megabytes * 1e6, `${figures.bytes} bytes`);
  t.ok(figures.whole);
});

t.end();
