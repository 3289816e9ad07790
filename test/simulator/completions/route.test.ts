import { test } from 'tap';
import { createClient, sdks } from '../../support/sdks/openai.js';
import { simulate } from '../../support/simulator.js';
import { post } from '../post.js';

const body = (more: object = {}) => ({ model: 'sim-text', prompt: 'Once upon', max_tokens: 100, ...more });
const answer = 'Simulated answer to: Once upon';

interface Choice {
  readonly index: number;
  readonly text: string;
  readonly finish_reason: string | null;
  readonly logprobs: {
    readonly tokens: readonly string[];
    readonly token_logprobs: readonly (number | null)[];
    readonly top_logprobs: readonly (object | null)[] | null;
    readonly text_offset: readonly number[];
  } | null;
}

const choicesOf = (text: string): readonly Choice[] => JSON.parse(text).choices;

test('an answer has the shape of a completion and contains the prompt', async (t) => {
  const simulator = await simulate(t);
  const heard = await post(simulator, '/completions', body());
  t.equal(heard.status, 200);
  t.match(heard.headers.get('x-request-id'), /^sim-[0-9a-f]{16}$/);
  t.match(JSON.parse(heard.text), {
    id: /^cmpl-[0-9a-f]{24}$/,
    object: 'text_completion',
    created: Number,
    model: 'sim-text',
    choices: [{ text: answer, index: 0, logprobs: null, finish_reason: 'stop' }],
    usage: { prompt_tokens: 3, completion_tokens: 8, total_tokens: 11 },
  });
});

test('without a limit an answer ends after sixteen tokens, and zero tokens leave the echo', async (t) => {
  const simulator = await simulate(t);
  const prompt = 'long '.repeat(30);
  const usual = await post(simulator, '/completions', { model: 'sim-text', prompt });
  t.match(choicesOf(usual.text), [{ finish_reason: 'length' }]);
  t.equal(choicesOf(usual.text)[0]?.text.length, 64);
  const echo = await post(simulator, '/completions', body({ echo: true, max_tokens: 0 }));
  t.match(choicesOf(echo.text), [{ text: 'Once upon', finish_reason: 'length' }]);
});

test('several prompts of every form have n choices each, one prompt after the other', async (t) => {
  const simulator = await simulate(t);
  const several = await post(simulator, '/completions', body({ prompt: ['a', 'b'], n: 2, echo: true }));
  t.strictSame(
    choicesOf(several.text).map(({ index, text }) => [index, text]),
    [
      [0, 'aSimulated answer to: a'],
      [1, 'aSimulated answer to: a (answer 2)'],
      [2, 'bSimulated answer to: b'],
      [3, 'bSimulated answer to: b (answer 2)'],
    ],
  );
  const tokens = await post(simulator, '/completions', body({ prompt: [[5, 6], [7]] }));
  t.match(choicesOf(tokens.text), [{ text: /5 6/ }, { text: /7/ }]);
  t.match(JSON.parse(tokens.text).usage, { prompt_tokens: 3 });
  t.equal(choicesOf((await post(simulator, '/completions', body({ prompt: [5, 6] }))).text).length, 1);
});

test('a stop sequence ends the text before it', async (t) => {
  const simulator = await simulate(t);
  const heard = await post(simulator, '/completions', body({ stop: ['upon', ' answer'] }));
  t.match(choicesOf(heard.text), [{ text: 'Simulated', finish_reason: 'stop' }]);
});

test('log probabilities name every piece of the text and where it stands', async (t) => {
  const simulator = await simulate(t);
  const plain = choicesOf((await post(simulator, '/completions', body({ logprobs: 2 }))).text)[0]?.logprobs;
  t.equal(plain?.tokens.join(''), answer);
  t.strictSame(plain?.text_offset.slice(0, 2), [9, 18]);
  t.ok(plain?.top_logprobs?.every((top) => Object.keys(top ?? {}).length === 2));
  const echoed = choicesOf(
    (await post(simulator, '/completions', body({ logprobs: 0, echo: true }))).text,
  )[0];
  t.equal(echoed?.logprobs?.tokens.join(''), `Once upon${answer}`);
  t.strictSame(echoed?.logprobs?.token_logprobs.slice(0, 2), [null, -0.25]);
  t.strictSame(echoed?.logprobs?.text_offset.slice(0, 3), [0, 4, 9]);
  t.equal(echoed?.logprobs?.top_logprobs, null);
});

test('a stream has the pieces of each choice, its end, the usage and [DONE]', async (t) => {
  const simulator = await simulate(t);
  const asked = { prompt: ['a', 'bb'], n: 2, echo: true, logprobs: 1 };
  const whole = await post(simulator, '/completions', body(asked));
  const heard = await post(
    simulator,
    '/completions',
    body({ ...asked, stream: true, stream_options: { include_usage: true } }),
  );
  t.equal(heard.events.at(-1), '[DONE]');
  const chunks = heard.events.slice(0, -1).map((event) => JSON.parse(event));
  t.match(chunks.at(-1), { choices: [], usage: JSON.parse(whole.text).usage });
  t.ok(chunks.slice(0, -1).every((chunk) => chunk.usage === null && chunk.object === 'text_completion'));
  const parts: readonly Choice[] = chunks.flatMap((chunk) => chunk.choices);
  for (const { index, text, logprobs, finish_reason } of choicesOf(whole.text)) {
    const own = parts.filter((part) => part.index === index);
    t.equal(own.map((part) => part.text).join(''), text);
    t.strictSame(
      own.flatMap((part) => part.logprobs?.text_offset ?? []),
      logprobs?.text_offset,
    );
    t.strictSame(
      own.filter((part) => part.finish_reason !== null).map((part) => part.finish_reason),
      [finish_reason],
    );
  }
});

test('faults are asked for by the prompt or the header', async (t) => {
  const simulator = await simulate(t);
  const text = await post(
    simulator,
    '/completions',
    body({ prompt: '[[fault:status=429 retry-after=7]] a' }),
  );
  t.equal(text.status, 429);
  t.equal(text.headers.get('retry-after'), '7');
  const cut = await post(simulator, '/completions', body({ stream: true }), {
    'x-simulator-fault': 'close after=2',
  });
  t.equal(cut.events.length, 2);
  const long = await post(simulator, '/completions', body({ prompt: '[[fault:long=50]] a' }));
  t.ok(JSON.parse(long.text).usage.completion_tokens >= 50);
  t.equal((await post(simulator, '/completions', body({ prompt: '[[fault:what]] a' }))).status, 400);
});

test('what the real one refuses is refused, with the parameter', async (t) => {
  const simulator = await simulate(t);
  const refused: readonly [object, number, string | null][] = [
    [{ prompt: 'a' }, 400, 'model'],
    [{ model: 'nope', prompt: 'a' }, 404, 'model'],
    [{ model: 'sim-text' }, 400, 'prompt'],
    [body({ prompt: [] }), 400, 'prompt'],
    [body({ prompt: 5 }), 400, 'prompt'],
    [body({ prompt: ['a', [1]] }), 400, 'prompt[1]'],
    [body({ max_tokens: -1 }), 400, 'max_tokens'],
    [body({ n: 0 }), 400, 'n'],
    [body({ n: 3, best_of: 2 }), 400, 'best_of'],
    [body({ best_of: 2, stream: true }), 400, 'best_of'],
    [body({ logprobs: 6 }), 400, 'logprobs'],
    [body({ stop: ['a', 'b', 'c', 'd', 'e'] }), 400, 'stop'],
    [[], 400, null],
  ];
  for (const [sent, status, param] of refused) {
    const heard = await post(simulator, '/completions', sent);
    t.equal(heard.status, status, JSON.stringify(sent));
    t.match(JSON.parse(heard.text), { error: { message: String, type: 'invalid_request_error', param } });
  }
  t.match((await post(simulator, '/completions', '{')).text, /not valid JSON/);
});

for (const sdk of sdks) {
  test(`${sdk.name} creates and streams completions, and raises what is refused`, async (t) => {
    const simulator = await simulate(t);
    const { completions } = createClient(sdk, simulator, { baseURL: simulator.url });
    const created = await completions.create(body());
    t.equal(created.choices[0]?.text, answer);
    let text = '';
    for await (const chunk of await completions.create({ ...body(), stream: true }))
      text += chunk.choices[0]?.text ?? '';
    t.equal(text, answer);
    await t.rejects(completions.create({ ...body(), model: 'nope' }), {
      status: 404,
      code: 'model_not_found',
    });
  });
}
