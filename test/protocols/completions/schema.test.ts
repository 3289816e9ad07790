import { test } from 'tap';
import { completionsRequest, completionsRequestType } from '../../../src/protocols/completions/index.js';
import { compileSchema } from '../../../src/schema/compile.js';
import { type Refused, refuses, takes } from '../verdicts.js';

const body = (more: object = {}) => ({ model: 'm', prompt: 'Once upon', ...more });

test('every form of prompt and every documented member is accepted, and members unknown here', async (t) => {
  for (const prompt of ['', 'a "b"\n', ['a', ''], [1, 2], [[1], [2, 3]]])
    takes(t, completionsRequest, body({ prompt }));
  takes(t, completionsRequest, {
    model: 'org/model:free',
    prompt: 'x',
    suffix: 'y',
    stream: true,
    stream_options: { include_usage: true },
    max_tokens: 0,
    temperature: 2,
    top_p: 1,
    n: 128,
    best_of: 20,
    logprobs: 5,
    echo: true,
    stop: ['a', 'b', 'c', 'd'],
    presence_penalty: -2,
    frequency_penalty: 2,
    logit_bias: { '50256': -100 },
    seed: -1,
    user: 'u',
    min_p: 0.1,
  });
  takes(
    t,
    completionsRequest,
    body({ suffix: null, stream: null, max_tokens: null, stop: null, best_of: 0 }),
  );
});

test('how many stop sequences there may be is for the upstream to say, and no limit is published', async (t) => {
  const five = body({ stop: ['a', 'b', 'c', 'd', 'e'] });
  takes(t, completionsRequest, five);
  t.ok(compileSchema(completionsRequestType).check(five));
});

test('the findings of the fast check are those of the body', async (t) => {
  const bytes = Buffer.from(JSON.stringify(body({ stream: true, stream_options: { include_usage: true } })));
  t.match(completionsRequest.accept(bytes), { model: 'm', stream: true, includeUsage: true });
});

const refused: readonly Refused[] = [
  [{ prompt: 'x' }, 'model', "Missing required parameter 'model'"],
  [{ model: 'm' }, 'prompt', "Missing required parameter 'prompt'"],
  [body({ model: '' }), 'model', 'a non-empty string'],
  [{ model: 'm', messages: [] }, 'messages', 'POST /v1/chat/completions'],
  [{ model: 'm', input: 'x' }, 'input', 'POST /v1/responses'],
  [[], null, 'the request body'],
];
for (const one of refused) {
  test(`refused with its place: ${JSON.stringify(one[0]).slice(0, 80)}`, async (t) =>
    refuses(t, completionsRequest, one));
}
