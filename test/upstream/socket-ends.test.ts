import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { test } from 'tap';
import { eventually } from '../support/eventually.js';
import { onRequests, rawServer } from './raw.js';
import { acceptance, Heard, socketServer } from './socket-peers.js';

type Test = Parameters<typeof rawServer>[0];

/** A server that accepts, and then leaves all to the test. */
async function accepted(t: Test, more: ConstructorParameters<typeof Heard>[1] = {}) {
  let peer!: Socket;
  const server = await rawServer(t, (socket) => {
    peer = socket;
    onRequests(socket, (text) => socket.write(acceptance(text)));
  });
  const heard = await new Heard(server.origin, more).opened;
  peer.removeAllListeners('data');
  return { heard, peer };
}

test('the code and the reason of the upstream are told', async (t) => {
  for (const [code, reason] of [
    [1000, ''],
    [1001, 'bye'],
    [1011, 'é'.repeat(60)],
    [3000, 'x'],
    [4999, 'y'],
  ] as const) {
    const server = await socketServer(t, (socket) => {
      socket.send('last');
      socket.close(code, reason);
    });
    const heard = await new Heard(server.origin).over;
    t.strictSame(heard.closed, { code, reason });
    t.equal(heard.fault, null);
    t.strictSame(heard.events, ['open', 'message', 'closed']);
    t.equal(heard.socket.send(Buffer.from('late'), false), false);
  }
  const server = await socketServer(t, (socket) => socket.close());
  t.strictSame((await new Heard(server.origin).over).closed, { code: 1005, reason: '' });
});

test('our code and reason are sent, after what was sent before', async (t) => {
  const long = `${'a'.repeat(122)}é and more`;
  const cases = [
    [1000, 'done', 1000, 'done'],
    [4001, Buffer.from('own'), 4001, 'own'],
    [1013, long, 1013, 'a'.repeat(122)],
    [1005, 'dropped', 1005, ''],
    [1006, 'broken', 1011, 'broken'],
    [1015, '', 1011, ''],
    [1004, '', 1011, ''],
    [999, '', 1011, ''],
    [0, '', 1011, ''],
    [2500, '', 1011, ''],
    [5000, '', 1011, ''],
  ] as const;
  for (const [code, reason, expectedCode, expectedReason] of cases) {
    const messages: string[] = [];
    const ends: unknown[] = [];
    const server = await socketServer(t, (socket) => {
      socket.on('message', (data) => messages.push(String(data)));
      socket.on('close', (...end) => ends.push([end[0], String(end[1])]));
    });
    const heard = await new Heard(server.origin).opened;
    heard.socket.send(Buffer.from('last'), false);
    heard.socket.close(code, reason);
    heard.socket.close(4000, 'again');
    t.equal(heard.socket.send(Buffer.from('too late'), false), false);
    await heard.over;
    await eventually(() => ends.length > 0);
    t.strictSame(messages, ['last']);
    t.strictSame(ends, [[expectedCode, expectedReason]]);
    t.strictSame(heard.events, ['open', 'closed']);
    t.equal(heard.closed?.code, expectedCode);
  }
});

test('a closing that is not answered ends within a second, paused or not, whatever still comes', async (t) => {
  await Promise.all(
    [false, true].map(async (paused) => {
      const { heard, peer } = await accepted(t);
      const flood = setInterval(() => peer.write('\x81\x02hi', 'latin1'), 5);
      t.teardown(() => clearInterval(flood));
      if (paused) heard.socket.pause();
      const before = performance.now();
      const count = heard.messages.length;
      heard.socket.close(1000, '');
      await heard.over;
      clearInterval(flood);
      const took = performance.now() - before;
      t.ok(took > 900 && took < 10_000, `${took}`);
      t.equal(heard.closed?.code, 1006);
      t.equal(heard.messages.length, count);
    }),
  );
});

test('a paused socket reads the answer to its close', async (t) => {
  const server = await socketServer(t, (socket) => {
    for (let i = 0; i < 3000; i++) socket.send(Buffer.alloc(1000));
  });
  const heard = await new Heard(server.origin).opened;
  heard.socket.pause();
  await new Promise((resolve) => setImmediate(resolve));
  heard.socket.close(4002, 'enough');
  await heard.over;
  t.strictSame(heard.closed, { code: 4002, reason: 'enough' });
});

test('an upstream that ends without reading what is still to be written does not hang', async (t) => {
  const { heard, peer } = await accepted(t);
  peer.pause();
  const chunk = Buffer.alloc(1 << 20);
  while (heard.socket.waitingBytes < 8 << 20) heard.socket.send(chunk, true);
  // Only the one way: the other stays open, and nobody reads it.
  (peer as Socket & { allowHalfOpen: boolean }).allowHalfOpen = true;
  peer.end();
  await heard.over;
  t.equal(heard.closed?.code, 1006);
});

test('a connection that breaks is 1006, and what is known of it is told', async (t) => {
  const ended = 'closed without a close frame';
  const breaks: (readonly [cut: (peer: Socket) => void, detail: string])[] = [
    [(peer) => peer.end(), ended],
    [(peer) => peer.destroy(), ended],
    [(peer) => peer.resetAndDestroy(), 'ECONNRESET'],
    [(peer) => peer.end('\x81\x05he', 'latin1'), ended],
  ];
  for (const [cut, detail] of breaks) {
    const { heard, peer } = await accepted(t);
    cut(peer);
    await heard.over;
    t.strictSame(heard.closed, { code: 1006, reason: '' });
    t.strictSame(heard.fault, { reason: 'reset', detail });
    t.strictSame(heard.events, ['open', 'closed']);
  }
});

test('what cannot be taken is closed with the code that says so', async (t) => {
  const cases = [
    ['\x82\x7e\x04\x01', 1009],
    [`\x02\x7e\x03\xe8${'x'.repeat(1000)}\x80\x19${'x'.repeat(25)}`, 1009],
    ['\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff', 1009],
    ['\x83\x00', 1002],
    ['\xc1\x00', 1002],
    ['\x81\x81aaaab', 1002],
    ['\x80\x00', 1002],
    ['\x88\x02\x03\xee', 1002],
    ['\x89\x7e\x00\x80', 1002],
    ['\x81\x02{\xff', 1007],
    ['\x01\x02{\xc3\x80\x01}', 1007],
  ] as const;
  for (const [text, code] of cases) {
    const { heard, peer } = await accepted(t, { maxMessageBytes: 1024 });
    let answer = '';
    peer.on('data', (data) => {
      answer += data.toString('latin1');
      peer.end();
    });
    peer.write(text, 'latin1');
    await heard.over;
    t.equal(heard.closed?.code, code, JSON.stringify(text.slice(0, 10)));
    t.equal(heard.fault?.reason, code === 1009 ? 'answer_too_large' : 'malformed_answer');
    await eventually(() => answer.length >= 8);
    t.equal(answer.charCodeAt(0), 0x88);
    const at = (i: number) => answer.charCodeAt(6 + i) ^ answer.charCodeAt(2 + i);
    t.equal(at(0) * 256 + at(1), code);
    t.strictSame(heard.events, ['open', 'closed']);
  }
  const server = await socketServer(t, (socket) => socket.send(Buffer.alloc(1024)));
  const heard = new Heard(server.origin, { maxMessageBytes: 1024 });
  await eventually(() => heard.messages.length === 1);
  heard.socket.terminate();
});

test('a silent upstream is asked, and found dead', async (t) => {
  const before = performance.now();
  const { heard, peer } = await accepted(t, { pingMs: 200 });
  let pinged = 0;
  peer.on('data', (data) => {
    if (data[0] === 0x89) pinged++;
  });
  await heard.over;
  const took = performance.now() - before;
  t.strictSame(heard.closed, { code: 1006, reason: '' });
  t.equal(heard.fault?.reason, 'idle_timeout');
  // The peer, in the same process, may read it only now.
  await eventually(() => pinged > 0);
  t.equal(pinged, 1);
  t.ok(took >= 390 && took < 10_000, `${took}`);
});

test('an upstream is asked before it is given up, however long the process itself did not run', async (t) => {
  const server = await socketServer(t);
  const heard = await new Heard(server.origin, { pingMs: 400 }).opened;
  let pings = 0;
  server.peers[0]!.socket.on('ping', () => pings++);
  // The first check for silence, from which it counts, comes in one of these turns.
  for (let turn = 0; turn < 5; turn += 1) await pause(60);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1200);
  await eventually(() => pings > 0 || heard.closed !== null);
  t.equal(heard.closed, null);
  heard.socket.terminate();
});

test('one that answers pings, one that sends and one that is paused live on', async (t) => {
  const quiet = await socketServer(t);
  const answering = await new Heard(quiet.origin, { pingMs: 1500 }).opened;
  let pings = 0;
  quiet.peers[0]!.socket.on('ping', () => pings++);
  const busy = await accepted(t, { pingMs: 1500, maxMessageBytes: 1 << 20 });
  // One message for all that time: its bytes count.
  busy.peer.write('\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00', 'latin1');
  const trickle = setInterval(() => busy.peer.write('x'), 20);
  t.teardown(() => clearInterval(trickle));
  const paused = await accepted(t, { pingMs: 1500 });
  paused.heard.socket.pause();
  await eventually(() => pings >= 2);
  t.strictSame([answering.events, busy.heard.events, paused.heard.events], [['open'], ['open'], ['open']]);
  paused.heard.socket.resume();
  await paused.heard.over;
  t.equal(paused.heard.closed?.code, 1006);
  answering.socket.terminate();
  busy.heard.socket.terminate();
});

test('pings are answered; of many at once the newest is', async (t) => {
  const { heard, peer } = await accepted(t);
  const pongs: string[] = [];
  peer.on('data', (data) => {
    for (let at = 0; at < data.length; at += 7) {
      t.equal(data[at], 0x8a);
      t.equal(data[at + 1], 0x81);
      pongs.push(String.fromCharCode((data[at + 2] as number) ^ (data[at + 6] as number)));
    }
  });
  for (const ping of 'abc') {
    peer.write(`\x89\x01${ping}`, 'latin1');
    await eventually(() => pongs.at(-1) === ping);
  }
  t.equal(pongs.join(''), 'abc');
  peer.write(`${'\x89\x01x'.repeat(500)}\x89\x01y`, 'latin1');
  await eventually(() => pongs.at(-1) === 'y');
  t.strictSame(heard.events, ['open']);
  heard.socket.terminate();
});

test('after terminate nothing is called, from within a callback too', async (t) => {
  const server = await socketServer(t, (socket) => {
    for (let i = 0; i < 10; i++) socket.send('x');
    socket.close(1000);
  });
  for (const event of ['open', 'message']) {
    const heard = new Heard(server.origin);
    heard.onEvent = (seen) => {
      if (seen === event) heard.socket.terminate();
    };
    await eventually(() => heard.events.includes(event));
    await eventually(() => server.peers.every(({ raw }) => raw.destroyed));
    t.equal(heard.events.at(-1), event);
    t.equal(heard.events.filter((seen) => seen === event).length, 1);
    heard.socket.resume();
    heard.socket.pause();
    heard.socket.close(1000, '');
    t.equal(heard.socket.send(Buffer.from('x'), false), false);
    t.equal(heard.socket.waitingBytes, 0);
  }
  const refusing = await rawServer(t, (socket) => {
    onRequests(socket, () => socket.write('HTTP/1.1 403 X\r\ncontent-length: 9\r\n\r\nhalf'));
  });
  const refused = new Heard(refusing.origin);
  await eventually(() => (refusing.sockets[0]?.bytesWritten ?? 0) > 0);
  refused.socket.terminate();
  await eventually(() => refusing.sockets.every((socket) => socket.destroyed));
  t.strictSame(refused.events, []);
});

test('a held end comes with close at once, and not at all with terminate', async (t) => {
  for (const [by, isGone] of [
    ['resume', true],
    ['resume', false],
    ['close', true],
    ['close', false],
    ['terminate', true],
  ] as const) {
    const { heard, peer } = await accepted(t);
    heard.onEvent = (event) => {
      if (event === 'message') heard.socket.pause();
    };
    peer.write('\x81\x01a\x81\x01b\x88\x02\x03\xe9', 'latin1');
    await eventually(() => heard.events.length === 2);
    if (isGone) peer.destroy();
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
    t.strictSame(heard.events, ['open', 'message']);
    heard.onEvent = () => {};
    if (by === 'close') heard.socket.close(1000, '');
    else heard.socket[by]();
    if (by === 'terminate') {
      for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
      t.strictSame(heard.events, ['open', 'message']);
      continue;
    }
    await heard.over;
    t.equal(heard.closed?.code, 1001);
    t.equal(heard.messages.length, by === 'resume' ? 2 : 1);
  }
});

test('nothing keeps the process once its sockets are over', async (t) => {
  const server = await socketServer(t, (socket) => socket.on('message', () => socket.close(1000)));
  const refusing = await rawServer(t, (socket) => {
    onRequests(socket, () => socket.write('HTTP/1.1 403 X\r\ncontent-length: 99\r\n\r\nhalf'));
  });
  const text = `
    const { Heard } = await import(${JSON.stringify(new URL('./socket-peers.js', import.meta.url).href)});
    const server = ${JSON.stringify(server.origin)};
    const refusing = ${JSON.stringify(refusing.origin)};
    for (let i = 0; i < 5; i++) {
      const heard = new Heard(server);
      heard.onEvent = (event) => event === 'open' && heard.socket.send(Buffer.from('x'), false);
      const gone = new Heard(server);
      gone.onEvent = (event) => event === 'open' && gone.socket.terminate();
      new Heard(refusing, { connectMs: 3000 }).onEvent = (event) => process.stdout.write(event + ' ');
      new Heard({ ...server, port: 1 });
    }
  `;
  const child = spawn(process.execPath, ['--input-type=module', '-e', text], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), 60_000);
  let out = '';
  child.stdout.on('data', (data: Buffer) => {
    out += data.toString();
  });
  const [code] = await once(child, 'exit');
  clearTimeout(timer);
  t.equal(code, 0);
  t.equal(out, 'declined '.repeat(5));
});
