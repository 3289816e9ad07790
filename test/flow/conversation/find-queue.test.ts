import { test } from 'tap';
import { GatewayError } from '../../../src/errors.js';
import { FindQueue, type FoundValues } from '../../../src/flow/conversation/find-queue.js';

interface Asked {
  readonly heard: unknown[];
  /** Of those that were begun, in their order. */
  readonly begun: {
    keyId: string;
    resolve: (values: FoundValues) => void;
    reject: (fault: unknown) => void;
  }[];
  /** @param keyId of the key whose searches they are */
  add(count: number, keyId?: string): void;
}

function start(): Asked {
  const queue = new FindQueue();
  const heard: unknown[] = [];
  const begun: Asked['begun'] = [];
  return {
    heard,
    begun,
    add(count, keyId = 'a') {
      for (let index = 0; index < count; index += 1)
        queue.add({
          keyId,
          find: () =>
            keyId === 'gone'
              ? null
              : new Promise((resolve, reject) => {
                  begun.push({ keyId, resolve, reject });
                }),
          found: (values) => heard.push(values),
          failed: (fault) => heard.push(fault),
        });
    },
  };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('a few are read at once, the others in their order', async (t) => {
  const { heard, begun, add } = start();
  add(6);
  t.equal(begun.length, 4);
  begun[1]?.resolve(['b']);
  begun[0]?.resolve(null);
  await turn();
  t.same(heard, [['b'], null]);
  t.equal(begun.length, 6);
});

test('a key with many searches delays another by one', async (t) => {
  const { begun, add } = start();
  add(60);
  add(2, 'b');
  add(1, 'c');
  const ended = [];
  for (let turns = 0; turns < 5; turns += 1) {
    begun[turns]?.resolve([]);
    await turn();
    ended.push(begun.at(-1)?.keyId);
  }
  t.same(ended, ['a', 'b', 'c', 'a', 'b']);
});

test('one key cannot fill the queue for the others', async (t) => {
  const { heard, begun, add } = start();
  add(4 + 1024);
  add(1, 'b');
  t.match(heard, [{ kind: 'overloaded' }], 'its own last search gives way');
  for (const at of [0, 1]) {
    begun[at]?.resolve([]);
    await turn();
  }
  t.equal(begun.at(-1)?.keyId, 'b');
});

test('what nobody waits for any more is not read', async (t) => {
  const { heard, begun, add } = start();
  add(4);
  add(3, 'gone');
  add(1, 'b');
  begun[0]?.resolve([]);
  await turn();
  t.same(
    begun.map(({ keyId }) => keyId),
    ['a', 'a', 'a', 'a', 'b'],
  );
  t.same(heard, [[]]);
});

test('whoever finds too many waiting is told so at once', async (t) => {
  const { heard, begun, add } = start();
  add(4 + 1024);
  t.equal(heard.length, 0);
  add(1);
  t.ok(heard[0] instanceof GatewayError);
  t.match(heard, [{ kind: 'overloaded', retryAfter: 1 }]);
  begun[0]?.resolve([]);
  await turn();
  add(1);
  t.equal(heard.length, 2, 'there is room again');
});

test('whoever waits behind one that fails is told the same', async (t) => {
  const { heard, begun, add } = start();
  add(7);
  const fault = new Error('no disk');
  begun[2]?.reject(fault);
  await turn();
  t.same(heard, [fault, fault, fault, fault]);
  t.equal(begun.length, 4);
  add(1);
  t.equal(begun.length, 5, 'and the next may try');
});
