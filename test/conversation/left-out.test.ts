import { test } from 'tap';
import { LeftOut, withoutLeftOut } from '../../src/conversation/left-out.js';

test('a name is told once, in the order in which it was met', async (t) => {
  const leftOut = new LeftOut(['top_k', 'cache_control']);
  leftOut.add('generationConfig.topK');
  leftOut.add('top_k');
  t.strictSame(leftOut.names, ['top_k', 'cache_control', 'generationConfig.topK']);
});

test('what cannot stand in a header is not told, nor a client’s thousandth name', async (t) => {
  const leftOut = new LeftOut();
  for (const name of ['', 'a\r\nb: c', 'a b', 'é', 'a,b', '1', 'x'.repeat(65)]) leftOut.add(name);
  t.strictSame(leftOut.names, []);
  for (let i = 0; i < 1000; i++) leftOut.add(`m${i}`);
  t.equal(leftOut.names.length, 32);
});

test('an answer repeats no setting that was left out', async (t) => {
  const echo = {
    user: 'u',
    safety_identifier: 'u',
    service_tier: 'flex',
    text: { verbosity: 'low', format: { type: 'json_schema', name: 'n', description: 'd' } },
    temperature: 1,
  };
  t.equal(withoutLeftOut(echo, []), echo);
  t.equal(withoutLeftOut(null, ['a']), null);
  const most = ['service_tier', 'text.verbosity', 'temperature.x', 'other.y'];
  const kept = { text: { format: { type: 'json_schema', name: 'n', description: 'd' } }, temperature: 1 };
  t.same(withoutLeftOut(echo, [...most, 'safety_identifier']), kept);
  t.same(withoutLeftOut(echo, [...most, 'user']), { ...kept, safety_identifier: 'u' });
  t.same(withoutLeftOut(echo, ['text.format.description', 'text.verbosity.x']), {
    ...echo,
    text: { verbosity: 'low', format: { type: 'json_schema', name: 'n' } },
  });
  t.equal(echo.service_tier, 'flex');
});
