import { test } from 'tap';
import type { Resolver } from '../../src/upstream/address.js';
import { createNameCache, type NameCache } from '../../src/upstream/names.js';

const v4 = (address: string) => [{ address, family: 4 }];
const failure = (code: string): Error => Object.assign(new Error('getaddrinfo'), { code });

/** A resolver whose questions are answered by the test, each by itself. */
function questions() {
  const open: { readonly name: string; answer(found: ReturnType<typeof v4> | Error): void }[] = [];
  const resolve: Resolver = (name, _options, done) => {
    const answer = (found: ReturnType<typeof v4> | Error): void =>
      found instanceof Error ? done(found, []) : done(null, found);
    open.push({ name, answer });
  };
  return { open, resolve };
}

/** @returns the address, or the code of the error */
function ask(names: NameCache, name = 'x.example'): Promise<string> {
  return new Promise((resolve) =>
    names.lookup(name, {}, (error, address) => resolve(error === null ? `${address}` : (error.code ?? ''))),
  );
}

test('a name that the resolver fails to tell keeps the addresses that it had, and whoever runs the gateway is told once', async (t) => {
  const { open, resolve } = questions();
  const told: string[] = [];
  const names = createNameCache(resolve, {
    onStale: (name, code) => told.push(`${name} ${code}`),
    onResolved: (name) => told.push(`${name} again`),
  });
  const next = (found: ReturnType<typeof v4> | Error): Promise<string> => {
    const asked = ask(names);
    open.shift()?.answer(found);
    return asked;
  };
  t.equal(await next(failure('EAI_AGAIN')), 'EAI_AGAIN', 'it had none');
  t.equal(await next(v4('127.0.0.1')), '127.0.0.1');
  for (const code of ['EAI_AGAIN', 'EAI_FAIL', 'EMFILE']) {
    names.forget('x.example');
    t.equal(await next(failure(code)), '127.0.0.1', code);
    t.equal(await ask(names), '127.0.0.1', 'and nobody is asked for a while');
  }
  names.forget('x.example');
  t.equal(await next(v4('127.0.0.2')), '127.0.0.1', 'nor does anybody wait for an answer');
  t.equal(await ask(names), '127.0.0.2');
  t.strictSame(told, ['x.example EAI_AGAIN', 'x.example again']);
});

test('a name that does not exist any more has no addresses', async (t) => {
  const { open, resolve } = questions();
  const names = createNameCache(resolve);
  const first = ask(names);
  open.shift()?.answer(v4('127.0.0.1'));
  t.equal(await first, '127.0.0.1');
  for (const answer of [failure('ENOTFOUND'), []]) {
    names.forget('x.example');
    const asked = ask(names);
    open.shift()?.answer(answer);
    t.equal(await asked, 'ENOTFOUND');
  }
  const asked = ask(names);
  open.shift()?.answer(failure('EAI_AGAIN'));
  t.equal(await asked, 'EAI_AGAIN', 'nor are the former ones used later');
});

test('a resolver that says nothing is not waited for where the name had addresses', async (t) => {
  const { open, resolve } = questions();
  const told: string[] = [];
  const names = createNameCache(resolve, {
    onStale: (_name, code) => told.push(code),
    onResolved: () => told.push('again'),
  });
  const first = ask(names);
  open.shift()?.answer(v4('127.0.0.1'));
  t.equal(await first, '127.0.0.1');
  names.forget('x.example');
  const waiting = [ask(names), ask(names)];
  t.strictSame(await Promise.all(waiting), ['127.0.0.1', '127.0.0.1']);
  t.equal(await ask(names), '127.0.0.1', 'by the same question, which is open still');
  t.equal(open.length, 1);
  open.shift()?.answer(v4('127.0.0.2'));
  t.equal(await ask(names), '127.0.0.2', 'its answer counts, however late it is');
  t.strictSame(told, ['ETIMEDOUT', 'again']);
});

test('a name whose servers say nothing has two questions open at most, so that others are looked up', async (t) => {
  const { open, resolve } = questions();
  let now = 0;
  t.intercept(performance, 'now', { value: () => now });
  const names = createNameCache(resolve);
  const waiting: Promise<string>[] = [];
  for (; now < 600_000; now += 1000) waiting.push(ask(names, 'silent.example'));
  t.equal(open.length, 2);
  const other = ask(names, 'other.example');
  open[2]?.answer(v4('127.0.0.3'));
  t.equal(await other, '127.0.0.3');
  open[0]?.answer(failure('EAI_AGAIN'));
  open[1]?.answer(v4('127.0.0.1'));
  t.strictSame([...new Set(await Promise.all(waiting))], ['EAI_AGAIN', '127.0.0.1']);
});

test('addresses of a day ago are used no more', async (t) => {
  const { open, resolve } = questions();
  let now = 0;
  t.intercept(performance, 'now', { value: () => now });
  const names = createNameCache(resolve);
  const next = (found: ReturnType<typeof v4> | Error): Promise<string> => {
    const asked = ask(names);
    open.shift()?.answer(found);
    return asked;
  };
  t.equal(await next(v4('127.0.0.1')), '127.0.0.1');
  now += 23 * 60 * 60 * 1000;
  t.equal(await next(failure('EAI_AGAIN')), '127.0.0.1');
  now += 2 * 60 * 60 * 1000;
  t.equal(await next(failure('EAI_AGAIN')), 'EAI_AGAIN');
});
