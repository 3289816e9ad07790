import { test } from 'tap';
import { createClient, sdks } from '../../support/sdks/openai.js';
import { simulate } from '../../support/simulator.js';
import { post } from '../post.js';

const categories = [
  'harassment',
  'harassment/threatening',
  'hate',
  'hate/threatening',
  'illicit',
  'illicit/violent',
  'self-harm',
  'self-harm/intent',
  'self-harm/instructions',
  'sexual',
  'sexual/minors',
  'violence',
  'violence/graphic',
];
const body = (input: unknown, more: object = {}) => ({ model: 'sim-moderation', input, ...more });
const image = (url: string) => ({ type: 'image_url', image_url: { url } });

test('a harmless text is in no category, and every category is there', async (t) => {
  const simulator = await simulate(t);
  const heard = await post(simulator, '/moderations', body('What a lovely, stable day.'));
  t.equal(heard.status, 200);
  const answer = JSON.parse(heard.text);
  t.match(answer, { id: /^modr-[0-9a-f]{24}$/, model: 'sim-moderation', results: [{ flagged: false }] });
  const [result] = answer.results;
  for (const member of ['categories', 'category_scores', 'category_applied_input_types'])
    t.strictSame(Object.keys(result[member]), categories, member);
  t.ok(Object.values(result.categories).every((flag) => flag === false));
  t.ok(Object.values<number>(result.category_scores).every((score) => score >= 0 && score < 0.5));
  t.strictSame(result.category_applied_input_types.hate, ['text']);
});

test('each text has a result of its own', async (t) => {
  const simulator = await simulate(t);
  const heard = await post(simulator, '/moderations', body(['hello', 'I will KILL you, you idiot']));
  const { results } = JSON.parse(heard.text);
  t.match(results, [
    { flagged: false },
    { flagged: true, categories: { violence: true, harassment: true, hate: false } },
  ]);
  t.ok(results[1].category_scores.violence > 0.9);
});

test('the parts of one input have one result, and images are looked at for their categories only', async (t) => {
  const simulator = await simulate(t);
  const parts = [{ type: 'text', text: 'look' }, image('https://example.com/murder-of-a-racist.png')];
  const { results } = JSON.parse((await post(simulator, '/moderations', body(parts))).text);
  t.equal(results.length, 1);
  t.match(results[0], { flagged: true, categories: { violence: true, hate: false } });
  t.strictSame(results[0].category_applied_input_types.violence, ['text', 'image']);
  t.strictSame(results[0].category_applied_input_types.hate, ['text']);
  const alone = await post(simulator, '/moderations', body([image('data:image/png;base64,kill')]));
  t.match(JSON.parse(alone.text).results, [
    { flagged: false, category_applied_input_types: { hate: [], violence: ['image'] } },
  ]);
});

test('without a model its own stands in', async (t) => {
  const simulator = await simulate(t);
  const heard = await post(simulator, '/moderations', { input: 'a' });
  t.match(JSON.parse(heard.text), { model: 'sim-moderation' });
});

test('what the real one refuses is refused, with the parameter', async (t) => {
  const simulator = await simulate(t);
  const refused: readonly [object, number, string][] = [
    [body('a', { model: 'nope' }), 404, 'model'],
    [{ model: 'sim-moderation' }, 400, 'input'],
    [body(5), 400, 'input'],
    [body([]), 400, 'input'],
    [body(['a', 5]), 400, 'input[1]'],
    [body([{ type: 'text' }]), 400, 'input[0]'],
    [body([{ type: 'text', text: 'a' }, 'b']), 400, 'input[1]'],
  ];
  for (const [sent, status, param] of refused) {
    const heard = await post(simulator, '/moderations', sent);
    t.equal(heard.status, status, JSON.stringify(sent));
    t.match(JSON.parse(heard.text), { error: { param } });
  }
  t.equal((await post(simulator, '/moderations', body('[[fault:status=500]] a'))).status, 500);
});

for (const sdk of sdks) {
  test(`${sdk.name} reads the results`, async (t) => {
    const simulator = await simulate(t);
    const { moderations } = createClient(sdk, simulator, { baseURL: simulator.url });
    const answer = await moderations.create({ input: 'a murder' });
    t.match(answer.results, [{ flagged: true, categories: { violence: true, 'self-harm/intent': false } }]);
    await t.rejects(moderations.create({ input: 'a', model: 'nope' }), {
      status: 404,
      code: 'model_not_found',
    });
  });
}
