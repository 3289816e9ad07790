import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { pino } from 'pino';
import t, { type Test, test } from 'tap';
import { type KeepOptions, keepRunning, sendMessage } from '../../src/supervisor/keep.js';

const log = pino({ level: 'silent' });

function optionsFor(t: Test, source: string, more: Partial<KeepOptions> = {}): KeepOptions {
  const folder = t.testdir({ 'child.mjs': source });
  return {
    role: 'worker',
    module: join(folder, 'child.mjs'),
    environment: () => process.env,
    onMessage() {},
    onExit() {},
    onGivenUp(reason) {
      t.fail(reason);
    },
    onFault(_where, fault) {
      t.error(fault);
    },
    log,
    ...more,
  };
}

const serving = `process.send({ pid: process.pid }); process.on('message', (text) => process.exit(Number(text.code)));`;

test('a process that never serves is given up after some tries, with its own reason', async (t) => {
  const ends: ChildProcess[] = [];
  const reason = await new Promise<string>((resolve) => {
    const place = keepRunning(
      optionsFor(t, `process.send({ why: 'no luck' }, () => process.exit(3));`, {
        onMessage: (child) => place.markFailed(child, 'no luck'),
        onExit: (child) => ends.push(child),
        onGivenUp: resolve,
      }),
    );
  });
  t.equal(reason, 'the worker does not start: no luck');
  t.equal(ends.length, 4);
});

test('a process that hangs before it has said anything is killed, and started again', async (t) => {
  const ends: ChildProcess[] = [];
  const reason = await new Promise<string>((resolve) => {
    keepRunning(
      optionsFor(t, 'setInterval(() => {}, 1000);', {
        silentMs: 300,
        onExit: (child) => ends.push(child),
        onGivenUp: resolve,
      }),
    );
  });
  t.equal(reason, 'the worker does not start: it said nothing within 300 ms');
  t.strictSame(
    ends.map(({ signalCode }) => signalCode),
    ['SIGKILL', 'SIGKILL', 'SIGKILL', 'SIGKILL'],
  );
});

test('a process that served is started again when it is killed', async (t) => {
  const pids: unknown[] = [];
  await new Promise<void>((resolve) => {
    const place = keepRunning(
      optionsFor(t, serving, {
        onMessage(child) {
          place.markServing(child);
          pids.push(child.pid);
          if (pids.length === 3) place.release();
          child.kill('SIGKILL');
        },
        onExit: () => {
          if (pids.length === 3) resolve();
        },
      }),
    );
  });
  t.equal(new Set(pids).size, 3);
});

test('a process that leaves of its own accord has its successor before it ends', async (t) => {
  const started: ChildProcess[] = [];
  const running: number[] = [];
  await new Promise<void>((resolve) => {
    const place = keepRunning(
      optionsFor(t, serving, {
        onMessage(child) {
          place.markServing(child);
          started.push(child);
          const [first, second] = started;
          if (second === undefined) return place.replace(child);
          running.push(place.running().length);
          if (first !== undefined) sendMessage(first, { code: 0 });
        },
        onExit(child) {
          running.push(place.running().length);
          if (child === started[1]) return resolve();
          place.release();
          started[1]?.kill('SIGKILL');
        },
      }),
    );
  });
  t.strictSame(running, [2, 1, 0]);
});

test('a place that is renewed keeps the process that serves, and none that does not serve yet', async (t) => {
  const started: ChildProcess[] = [];
  const gone: ChildProcess[] = [];
  const running = await new Promise<readonly ChildProcess[]>((resolve) => {
    const look = () => {
      if (started.length === 3 && gone.length === 1) resolve(place.running());
    };
    const place = keepRunning(
      optionsFor(t, serving, {
        onMessage(child) {
          started.push(child);
          if (started.length === 1) place.markServing(child);
          if (started.length < 3) place.renew();
          else place.release();
          look();
        },
        onExit(child) {
          gone.push(child);
          look();
        },
      }),
    );
  });
  t.strictSame(gone[0]?.pid, started[1]?.pid);
  t.strictSame(
    running.map(({ pid }) => pid),
    [started[0]?.pid, started[2]?.pid],
  );
  for (const child of running) child.kill('SIGKILL');
});

test('a released place starts nothing any more', async (t) => {
  const left = await new Promise<readonly ChildProcess[]>((resolve) => {
    const place = keepRunning(
      optionsFor(t, serving, {
        onMessage(child) {
          place.release();
          sendMessage(child, { code: 1 });
          place.replace(child);
        },
        onExit: () => resolve(place.running()),
      }),
    );
  });
  t.strictSame(left, []);
});

test('a process that is killed while it drains is logged, and one that ends by itself or that is ended is not', async (t) => {
  for (const [end, logged] of [
    ['kill', ['it ended with SIGKILL']],
    ['fail', ['it ended with code 7']],
    ['leave', []],
    ['be ended', []],
  ] as const) {
    const lines: string[] = [];
    const children: ChildProcess[] = [];
    await new Promise<void>((resolve) => {
      const place = keepRunning(
        optionsFor(t, serving, {
          log: pino({}, { write: (line) => void lines.push(line) }),
          onMessage(child) {
            place.markServing(child);
            children.push(child);
            const [first] = children;
            if (first === undefined) return;
            if (children.length === 1) {
              place.replace(first);
              return;
            }
            place.release();
            if (end === 'kill') process.kill(first.pid ?? 0, 'SIGKILL');
            else if (end === 'be ended') first.kill('SIGKILL');
            else sendMessage(first, { code: end === 'fail' ? 7 : 0 });
          },
          // Logged after the call.
          onExit: () => void setImmediate(resolve),
        }),
      );
    });
    const said = lines.map((line) => JSON.parse(line) as { msg: string; worker: number; reason: string });
    t.strictSame(
      said.map(({ reason }) => reason),
      logged,
      end,
    );
    for (const { msg, worker } of said) {
      t.equal(msg, 'worker ended while it drained');
      t.equal(worker, children[0]?.pid);
    }
    children[1]?.kill('SIGKILL');
  }
});

t.end();
