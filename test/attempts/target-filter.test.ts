import { test } from 'tap';
import { isAllowed, parseTargetFilter } from '../../src/attempts/choose.js';
import { fc } from '../support/seed.js';
import { makeTarget } from './targets.js';

test('names are read, with and without an exclamation mark', async (t) => {
  const filterOf = (value: string) => {
    const parsed = parseTargetFilter(value);
    return parsed.ok ? [parsed.targetFilter.wanted, parsed.targetFilter.excluded] : parsed.problem;
  };
  t.same(filterOf('main'), [['main'], []]);
  t.same(filterOf(' main, !claude/x ,'), [['main'], ['claude/x']]);
  t.same(filterOf('! claude'), [[], ['claude']]);
  t.same(filterOf('a/b/c,a b,a/b/c'), [['a/b/c', 'a b'], []]);
});

test('what is wrong is said', async (t) => {
  const problem = (value: string) => {
    const parsed = parseTargetFilter(value);
    return parsed.ok ? '' : parsed.problem;
  };
  t.equal(problem(''), 'The header x-gateway-target names no target.');
  t.match(problem(' , ,'), /names no target/);
  t.match(problem('main, !'), /without the name/);
  t.match(problem('!!main'), /two exclamation marks in "!!main"/);
  t.match(problem('main, !main'), /both wants and excludes "main"/);
  t.match(problem('!main, main'), /both wants and excludes "main"/);
  t.match(problem('main/'), /"main\/", which is neither/);
  t.match(problem('/x'), /"\/x", which is neither/);
  t.match(problem(Array.from({ length: 33 }, (_one, i) => `n${i}`).join()), /more than 32 targets/);
  t.match(problem('x'.repeat(2049)), /more than 2048 characters/);
  t.ok(problem(`/${'x'.repeat(2000)}`).length < 200, 'and what was sent is not repeated at length');
});

test('a name is that of an upstream, or of an upstream and its model', async (t) => {
  const target = makeTarget('main', { model: 'gpt/x' });
  const wants = (...wanted: string[]) => isAllowed(target, { wanted, excluded: [] });
  for (const name of ['main', 'main/gpt/x']) t.ok(wants('other', name), name);
  for (const name of ['mai', 'mainn', 'main/gpt', 'main/gpt/y', 'main-gpt/x', 'nain/gpt/x', 'gpt/x', 'MAIN'])
    t.notOk(wants(name), name);
  t.ok(isAllowed(target, { wanted: [], excluded: ['other', 'main/gpt'] }));
  t.notOk(isAllowed(target, { wanted: ['main/gpt/x'], excluded: ['main'] }));
  t.notOk(isAllowed(target, { wanted: ['main'], excluded: ['main/gpt/x'] }));
});

test('every list of names is read as it was written', async (t) => {
  const word = fc.integer({ min: 0, max: 99_999 }).map((number) => number.toString(36));
  const name = fc.oneof(
    word,
    fc.tuple(word, word).map(([upstream, model]) => `${upstream}/${model}`),
  );
  const items = fc.uniqueArray(fc.record({ name, excluded: fc.boolean() }), {
    selector: (item) => item.name,
    minLength: 1,
    maxLength: 32,
  });
  fc.assert(
    fc.property(items, (each) => {
      const parsed = parseTargetFilter(
        each.map((item) => `${item.excluded ? '!' : ''}${item.name}`).join(', '),
      );
      const names = (excluded: boolean) =>
        each.filter((item) => item.excluded === excluded).map((item) => item.name);
      return (
        parsed.ok &&
        parsed.targetFilter.wanted.join() === names(false).join() &&
        parsed.targetFilter.excluded.join() === names(true).join()
      );
    }),
  );
  const latin1 = fc.uint8Array().map((bytes) => Buffer.from(bytes).toString('latin1'));
  fc.assert(fc.property(latin1, (value) => typeof parseTargetFilter(value).ok === 'boolean'));
  t.pass();
});
