import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { type Test, test } from 'tap';
import { errorCode } from '../../src/errors.js';
import { LineWriter } from '../../src/supervisor/log.js';
import { eventually } from '../support/eventually.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const log = new URL('../../src/supervisor/log.js', import.meta.url).href;

/** A pipe whose ends are opened as often as one likes, and wait for nobody. */
function makePipe(t: Test): { read(): number; write(): number } {
  const path = join(temporaryFolder(t), 'pipe');
  execFileSync('mkfifo', [path]);
  const open = (flags: number): number => {
    const fd = openSync(path, flags | constants.O_NONBLOCK);
    t.teardown(() => {
      try {
        closeSync(fd);
      } catch {
        // The test has closed it.
      }
    });
    return fd;
  };
  return { read: () => open(constants.O_RDONLY), write: () => open(constants.O_WRONLY) };
}

/** All that is in a pipe at this moment. */
function takeAll(fd: number): string {
  const bytes = Buffer.alloc(1_000_000);
  let text = '';
  for (;;) {
    try {
      const length = readSync(fd, bytes);
      if (length === 0) return text;
      text += bytes.toString('latin1', 0, length);
    } catch (error) {
      if (errorCode(error) === 'EAGAIN') return text;
      throw error;
    }
  }
}

test('a file gets every line in its order, however long it is', async (t) => {
  const path = join(temporaryFolder(t), 'log');
  const fd = openSync(path, 'a');
  t.teardown(() => closeSync(fd));
  const writer = new LineWriter(fd);
  const lines = Array.from({ length: 5000 }, (_, number) => `${number} ${'x'.repeat(number % 700)}\n`);
  lines.splice(2000, 0, `${'long '.repeat(40_000)}\n`);
  for (const line of lines) writer.add(line);
  t.ok(writer.waiting() > 0, 'nobody has waited for it');
  await writer.written();
  t.equal(writer.waiting(), 0);
  t.equal(writer.takeDropped(), 0);
  t.ok(readFileSync(path, 'utf8') === lines.join(''));
});

test('what is to be written is, behind full batches, too', async (t) => {
  const path = join(temporaryFolder(t), 'log');
  const fd = openSync(path, 'a');
  t.teardown(() => closeSync(fd));
  const writer = new LineWriter(fd);
  // The first is under way while the others come, which are more than one batch and less than two.
  const lines = Array.from({ length: 230 }, (_, number) => `${number} ${'x'.repeat(300)}\n`);
  for (const line of lines) {
    writer.add(line);
    writer.flush();
  }
  await eventually(() => writer.waiting() === 0);
  t.equal(readFileSync(path, 'utf8'), lines.join(''));
});

test('lines that several processes write to one pipe stay whole', async (t) => {
  const script = `
    const { LineWriter } = await import(${JSON.stringify(log)});
    const writer = new LineWriter(1);
    for (let turn = 0; turn < 100; turn++) {
      for (let line = 0; line < 50; line++)
        writer.add(JSON.stringify({ pid: process.pid, number: turn * 50 + line, text: 'x'.repeat(line * 20) }) + '\\n');
      writer.flush();
      await new Promise(setImmediate);
    }
    while (writer.waiting() > 0) await new Promise(setImmediate);
  `;
  const run = [process.execPath, '--input-type=module', '-e', script];
  const output = execFileSync('sh', ['-c', '("$@" & "$@" & "$@" & wait) | cat', 'sh', ...run], {
    maxBuffer: 1e9,
    encoding: 'utf8',
  });
  const lines = new Map<number, number>();
  for (const line of output.trimEnd().split('\n')) {
    const { pid, number } = JSON.parse(line) as { pid: number; number: number };
    const before = lines.get(pid) ?? 0;
    if (number !== before) t.fail(`line ${number} of ${pid} after ${before}`);
    lines.set(pid, before + 1);
  }
  t.strictSame([...lines.values()], [5000, 5000, 5000]);
});

test('where nobody reads, lines wait up to a bound, those beyond it are counted, and all go on with the reader', async (t) => {
  const pipe = makePipe(t);
  const reader = pipe.read();
  const writer = new LineWriter(pipe.write());
  const rest = 'x'.repeat(1000);
  let added = 0;
  while (added < 30_000) {
    writer.add(`${added++} ${rest}\n`);
    if (added % 100 === 0) writer.flush();
  }
  const dropped = writer.takeDropped();
  t.ok(dropped > 0);
  t.ok(writer.waiting() * rest.length < 20_000_000, `${writer.waiting()} wait`);
  let text = '';
  await eventually(() => {
    text += takeAll(reader);
    writer.flush();
    return writer.waiting() === 0;
  });
  t.equal(writer.takeDropped(), 0);
  const numbers = text.trimEnd().split('\n').map(Number.parseFloat);
  t.equal(numbers.length, added - dropped);
  t.ok(numbers.every((number, index) => number === index));
  writer.add('again\n');
  writer.flush();
  t.equal(takeAll(reader), 'again\n');
});

test('a line that was written in part is ended before the next one', async (t) => {
  const pipe = makePipe(t);
  const reader = pipe.read();
  const writer = new LineWriter(pipe.write());
  const long = 'x'.repeat(300_000);
  writer.add(`${long}\n`);
  writer.flush();
  const begun = takeAll(reader);
  t.ok(begun.length > 0 && long.startsWith(begun));
  closeSync(reader);
  await eventually(() => writer.takeDropped() === 1);
  for (let again = 0; again < 3; again++) await writer.written();
  t.equal(writer.takeDropped(), 0, 'it is dropped once, however often its end is tried');
  const next = pipe.read();
  writer.add('next\n');
  await eventually(() => {
    writer.flush();
    return writer.waiting() === 0;
  });
  t.equal(takeAll(next), '\nnext\n');
});

test('lines that wait stay bounded when one was written in part behind which all room is taken', async (t) => {
  const pipe = makePipe(t);
  const reader = pipe.read();
  const writer = new LineWriter(pipe.write());
  writer.add(`${'x'.repeat(300_000)}\n`);
  writer.flush();
  t.ok(takeAll(reader).length > 0);
  const line = `${'x'.repeat(1000)}\n`;
  const fill = (): void => {
    for (let added = 0; added < 30_000; added++) writer.add(line);
  };
  fill();
  closeSync(reader);
  let dropped = writer.takeDropped();
  await eventually(() => writer.takeDropped() === 1);
  fill();
  dropped += writer.takeDropped();
  t.equal(writer.waiting(), 60_000 - dropped);
  t.ok(writer.waiting() * line.length < 20_000_000, `${writer.waiting()} wait`);
});

test('on a full disk lines are counted, and the writer closes', async (t) => {
  const fd = openSync('/dev/full', 'w');
  t.teardown(() => closeSync(fd));
  const writer = new LineWriter(fd);
  let dropped = 0;
  for (let line = 0; line < 3; line++) writer.add(`${line}\n`);
  writer.flush();
  await eventually(() => {
    dropped += writer.takeDropped();
    return dropped === 3;
  });
  writer.add('one more\n');
  await writer.written();
  t.equal(writer.takeDropped(), 1);
  t.equal(writer.waiting(), 0);
});

test('a process ends although nobody reads its lines', async (t) => {
  const pipe = makePipe(t);
  pipe.read();
  const script = `
    const { LineWriter } = await import(${JSON.stringify(log)});
    const writer = new LineWriter(1);
    for (let line = 0; line < 10_000; line++) writer.add('x'.repeat(1000) + '\\n');
    await writer.written();
    process.exit(writer.waiting() > 0 ? 7 : 0);
  `;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', pipe.write(), 'inherit'],
  });
  const [code] = await once(child, 'exit');
  t.equal(code, 7);
});

test('a process whose log is a socket that nobody reads ends, too', async (t) => {
  for (const [code, signal] of [
    [0, 'SIGTERM'],
    [1, 'SIGKILL'],
  ] as const) {
    const script = `
      const { createLog } = await import(${JSON.stringify(log)});
      const { lines } = createLog('worker', 'info');
      process.on('SIGTERM', () => {});
      for (let line = 0; line < 5000; line++) lines.add('x'.repeat(1000) + '\\n');
      await lines.written();
      process.exit(${code});
    `;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    t.teardown(() => child.kill('SIGKILL'));
    child.stdout.pause();
    t.strictSame(await once(child, 'exit'), [null, signal]);
  }
});
