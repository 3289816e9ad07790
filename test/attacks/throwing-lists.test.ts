import { test } from 'tap';
import { RecordQueue } from '../../src/flow/record/account.js';
import { SweepList, SweepMember } from '../../src/http/sweep.js';
import type { CallRecord } from '../../src/metrics/call-record.js';
import { Timed, TimerWheel } from '../../src/upstream/timers.js';
import { createRequestWriter, type RequestSink } from '../../src/upstream/write.js';
import { headerLine, joinLines, requestLine } from '../../src/wire/head.js';
import { callRecord } from '../support/call-record.js';

const thrown = new Error('thrown');

test('one that throws in a sweep is told so, and all others are met', (t) => {
  const list = new SweepList();
  const [swept, faults]: [number[], unknown[]] = [[], []];
  class Probe extends SweepMember {
    constructor(readonly number: number) {
      super();
    }
    override onSweep(): void {
      swept.push(this.number);
      if (this.number === 2) throw thrown;
    }
    override onFault(where: string, fault: unknown): void {
      faults.push([where, this.number, fault]);
    }
  }
  for (const number of [1, 2, 3]) list.add(new Probe(number));
  list.sweep(0);
  t.strictSame(swept, [3, 2, 1]);
  t.strictSame(faults, [['timer', 2, thrown]]);
  t.end();
});

test('a deadline that throws is told so, and those of the same tick come all the same', async (t) => {
  const wheel = new TimerWheel();
  const faults: unknown[] = [];
  let left = 3;
  await new Promise<void>((resolve) => {
    class Probe extends Timed {
      constructor(readonly number: number) {
        super();
      }
      override expire(): void {
        if (--left === 0) setImmediate(resolve);
        if (this.number === 2) throw thrown;
      }
      override onFault(where: string, fault: unknown): void {
        faults.push([where, this.number, fault]);
      }
    }
    const now = performance.now();
    for (const number of [1, 2, 3]) wheel.set(new Probe(number), now);
    const hold = setTimeout(() => {}, 60_000);
    t.teardown(() => clearTimeout(hold));
  });
  t.strictSame(faults, [['timer', 2, thrown]]);
});

test('a call that cannot be noted is told so, and those behind it are noted', (t) => {
  const calls = Array.from({ length: 5 }, () => callRecord());
  const [noted, faults]: [CallRecord[], unknown[]] = [[], []];
  const queue = new RecordQueue(
    (call) => {
      if (call === calls[2]) throw thrown;
      noted.push(call);
    },
    (fault, call) => faults.push([fault, calls.indexOf(call)]),
  );
  for (const call of calls) queue.add(call);
  queue.flush();
  t.equal(noted.length, 4);
  t.strictSame(faults, [[thrown, 2]]);
  t.end();
});

test('a request that cannot be written ends alone, and the rest of its batch leaves', async (t) => {
  const [written, faults]: [string[], unknown[]] = [[], []];
  const sinkOf = (name: string): RequestSink =>
    ({
      socket: {
        destroyed: false,
        writableLength: 0,
        write: (bytes: Buffer) => {
          if (name === 'b') throw thrown;
          written.push(`${name}: ${bytes.toString('latin1', 0, 14)}`);
        },
      },
      onWrite: () => {},
      onFault: (where: string, fault: unknown) => faults.push([where, name, fault]),
    }) as unknown as RequestSink;
  const writer = createRequestWriter();
  const head = joinLines(requestLine('GET', '/'), headerLine('host', 'x'));
  for (const name of ['a', 'b', 'c']) {
    writer.write(sinkOf(name), { method: 'GET', head, body: [], source: null, hasEffects: () => false });
  }
  await new Promise((resolve) => setImmediate(resolve));
  t.strictSame(written, ['a: GET / HTTP/1.1', 'c: GET / HTTP/1.1']);
  t.strictSame(faults, [['upstream', 'b', thrown]]);
});
