import { test } from 'tap';
import { MemoryBudget } from '../../src/flow/memory-budget.js';
import { type TurnTaker, UploadTurns } from '../../src/flow/upload-turns.js';

const bufferedBytes = 1000;
const bufferedBytesPerKey = 300;
const limits = { bufferedBytes, bufferedBytesPerKey };

/** An upload whose client sends all that it has whenever it is read. */
class Sender implements TurnTaker {
  readonly keyId: string;
  waiting = 0;
  mostRead: number;
  isRead = true;
  /** Its upstream takes more. */
  isWanted = true;
  readonly #turns: UploadTurns;
  readonly #memory: MemoryBudget;

  constructor({ turns, memory }: Worker, keyId: string, bytes: number) {
    this.#turns = turns;
    this.#memory = memory;
    this.keyId = keyId;
    this.mostRead = bytes;
    turns.add(this);
    this.reconsider();
  }

  reconsider(): void {
    this.isRead =
      this.isWanted && this.mostRead > 0 && this.waiting === 0 && this.#turns.mayRead(this, limits);
  }

  /** One read of its socket, which brings so many bytes in steps. */
  read(bytes: number): void {
    for (let left = bytes; left > 0; left -= 10) {
      const step = Math.min(10, left);
      this.mostRead -= step;
      this.waiting += step;
      this.#memory.add(this.keyId, step);
      this.#turns.onMoreWaiting(this);
    }
    this.isRead = false;
  }

  /** Its upstream takes so many. */
  drain(bytes: number): void {
    const taken = Math.min(bytes, this.waiting);
    this.waiting -= taken;
    this.#memory.add(this.keyId, -taken);
    this.#turns.onLessWaiting();
    if (this.waiting === 0 && this.mostRead === 0) this.#turns.remove(this);
    else if (this.waiting === 0) this.reconsider();
  }

  leave(): void {
    this.#memory.add(this.keyId, -this.waiting);
    this.waiting = 0;
    this.mostRead = 0;
    this.isRead = false;
    this.#turns.remove(this);
  }
}

interface Worker {
  readonly memory: MemoryBudget;
  readonly turns: UploadTurns;
}

function worker(): Worker {
  const memory = new MemoryBudget();
  return { memory, turns: new UploadTurns(memory) };
}

test('uploads are read as long as there is room for all that they may bring', (t) => {
  const here = worker();
  const [first, second, third] = [
    new Sender(here, 'a', 100),
    new Sender(here, 'a', 200),
    new Sender(here, 'a', 200),
  ];
  t.ok(first.isRead && second.isRead && third.isRead, 'nothing waits yet');
  first.read(100);
  t.ok(second.isRead && third.isRead, 'each alone has its room');
  second.read(200);
  t.notOk(third.isRead);
  first.drain(50);
  t.notOk(third.isRead);
  second.drain(150);
  t.ok(third.isRead);
  t.end();
});

test('an upload is held back by what waits of its key, or of all when the worker is full, and by nothing else', (t) => {
  const here = worker();
  here.memory.add('a', 290);
  const first = new Sender(here, 'a', 100);
  const other = new Sender(here, 'b', 200);
  t.ok(first.isRead, 'what else the key holds may never end, so the upload has its chance');
  other.read(200);
  t.ok(first.isRead);
  here.memory.add('c', 450);
  here.memory.add('b', 10);
  first.reconsider();
  t.notOk(first.isRead, 'the worker is full');
  other.leave();
  t.ok(first.isRead);
  t.end();
});

test('of one key, the one that was held back first is read first, however little another may bring', (t) => {
  const here = worker();
  const filling = new Sender(here, 'a', 250);
  filling.read(250);
  const large = new Sender(here, 'a', 100);
  const small = new Sender(here, 'a', 10);
  t.notOk(large.isRead);
  t.notOk(small.isRead);
  t.ok(new Sender(here, 'b', 10).isRead, 'other keys have no part in it');
  large.leave();
  t.ok(small.isRead, 'who has left is not waited for');
  t.end();
});

test('one that was held back and wants nothing any more keeps nobody waiting', (t) => {
  const here = worker();
  const filling = new Sender(here, 'a', 250);
  filling.read(250);
  const stopped = new Sender(here, 'a', 100);
  const next = new Sender(here, 'a', 100);
  stopped.isWanted = false;
  filling.drain(100);
  t.notOk(stopped.isRead);
  t.ok(next.isRead);
  t.end();
});

test('whatever is read and drained in whichever order, no bound is passed and all come to their ends', (t) => {
  let seed = 1;
  const random = (below: number) => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 1;
    return seed % below;
  };
  for (let round = 0; round < 200; round++) {
    const here = worker();
    const senders = Array.from(
      { length: 12 },
      () => new Sender(here, random(2) === 0 ? 'a' : `${random(4)}`, 10 + random(250)),
    );
    let looks = 0;
    const isOver = () => senders.every(({ mostRead, waiting }) => mostRead === 0 && waiting === 0);
    while (!isOver()) {
      if (++looks > 10_000) return t.fail('they wait for one another') ?? t.end();
      const sender = senders[random(senders.length)];
      if (sender === undefined) continue;
      const way = random(20);
      if (way === 0) sender.leave();
      else if (way < 10 && sender.isRead)
        sender.read(random(3) === 0 ? 1 + random(sender.mostRead) : sender.mostRead);
      else if (sender.waiting > 0) sender.drain(1 + random(100));
      if (
        here.memory.bytes > bufferedBytes ||
        senders.some(({ keyId }) => here.memory.bytesOf(keyId) > bufferedBytesPerKey)
      )
        return t.fail('a bound was passed') ?? t.end();
    }
    if (here.memory.bytes !== 0) t.fail(`${here.memory.bytes} are left`);
  }
  t.pass('all ended');
  t.end();
});
