import { fstatSync, openSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { test } from 'tap';
import { DescriptorWatch } from '../../src/http/descriptors.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { startServer } from './http-server.js';

function isOpen(descriptor: number): boolean {
  try {
    return fstatSync(descriptor).isCharacterDevice();
  } catch {
    return false;
  }
}

test('descriptors have run out where none is left at two looks, and until there are some more than one', (t) => {
  let left = 1;
  const opened: number[] = [];
  const watch = new DescriptorWatch(() => {
    if (opened.length >= left) throw Object.assign(new Error('too many open files'), { code: 'EMFILE' });
    const descriptor = openSync('/dev/null', 'r');
    opened.push(descriptor);
    return descriptor;
  });
  const look = (room: number): boolean => {
    left = room;
    opened.length = 0;
    const isShort = watch.isShort();
    for (const descriptor of opened) if (isOpen(descriptor)) t.fail('one is kept');
    return isShort;
  };
  t.strictSame([1, 0, 1, 0].map(look), [false, false, false, false]);
  t.strictSame([0, 1, 31, 32, 1].map(look), [true, true, true, false, false]);
  t.notOk(new DescriptorWatch().isShort(), 'this process has some');
  const none = new DescriptorWatch(() => {
    throw Object.assign(new Error('no such file'), { code: 'ENOENT' });
  });
  t.strictSame(
    [none.isShort(), none.isShort(), none.isShort()],
    [false, false, false],
    'without the file nobody knows',
  );
  t.end();
});

test('a server without descriptors does not listen, serves on, and listens again when there are some', async (t) => {
  let isShort = false;
  const { port, server } = await startServer(t, (exchange) => exchange.respond(200, '', 'ok'), null, {
    isShort: () => isShort,
    port: await freePort(),
  });
  let last: Socket | null = null;
  const connects = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => {
        last?.destroy();
        last = socket;
        resolve(true);
      }).on('error', () => resolve(false));
    });
  const refuses = async (): Promise<boolean> => !(await connects());
  const everyMs = 20;
  t.ok(await connects());
  isShort = true;
  await eventually(refuses, { everyMs });
  const kept = await eventually(() => last);
  let heard = '';
  kept.on('data', (bytes) => {
    heard += bytes;
  });
  kept.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  await eventually(() => heard.endsWith('ok'), { everyMs });
  isShort = false;
  await eventually(connects, { everyMs });
  await server.stopListening();
  t.ok(await refuses());
  kept.destroy();
});
