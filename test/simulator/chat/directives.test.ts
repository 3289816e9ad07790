import { test } from 'tap';
import { simulate } from '../../support/simulator.js';
import { ask, chat, type Heard } from '../ask.js';

const functionTool = (name: string): object => ({
  type: 'function',
  function: {
    name,
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
});
const tools = [functionTool('get_weather'), functionTool('get_time')];

interface CallDelta {
  readonly index: number;
  readonly function: { readonly name?: string; readonly arguments: string };
}

function callDeltas(heard: Heard): CallDelta[] {
  return heard.events
    .filter((event) => event !== '[DONE]')
    .flatMap((event) => JSON.parse(event).choices[0].delta.tool_calls ?? []);
}

function joined(deltas: readonly CallDelta[]): string[] {
  const inputs = ['', ''];
  for (const { index, function: part } of deltas) {
    inputs[index] += part.arguments;
  }
  return inputs;
}

const asked = (text: string, stream = true): object =>
  chat(`${text} weather and time in Oslo`, { tools, stream });
const expected = ['{"city":"Oslo"}', '{"city":"Oslo"}'];

test('interleave lets the deltas of parallel calls take turns, which otherwise follow each other', async (t) => {
  const simulator = await simulate(t);
  const usual = callDeltas(await ask(simulator, asked('')));
  const interleaved = callDeltas(await ask(simulator, asked('[[fault:interleave]]')));
  t.strictSame(joined(usual), expected);
  t.strictSame(joined(interleaved), expected);
  t.strictSame(
    usual.map(({ index }) => index),
    [0, 0, 0, 1, 1, 1],
  );
  t.strictSame(
    interleaved.map(({ index }) => index),
    [0, 1, 0, 1, 0, 1],
  );
});

test('args-at-once puts a whole call in one delta, zero-args leaves its input empty', async (t) => {
  const simulator = await simulate(t);
  const once = callDeltas(await ask(simulator, asked('[[fault:args-at-once]]')));
  t.match(once, [
    { index: 0, id: /^call_/, function: { name: 'get_weather', arguments: expected[0] } },
    { index: 1, id: /^call_/, function: { name: 'get_time', arguments: expected[1] } },
  ]);
  t.equal(once.length, 2);
  const none = callDeltas(await ask(simulator, asked('[[fault:zero-args]]')));
  t.strictSame(joined(none), ['', '']);
  t.equal(none.length, 2);
  const whole = JSON.parse((await ask(simulator, asked('[[fault:zero-args]]', false))).text);
  t.match(whole.choices[0], {
    finish_reason: 'tool_calls',
    message: { tool_calls: [{ function: { arguments: '' } }, { function: { arguments: '' } }] },
  });
});

test('refuse gives a refusal in place of the text', async (t) => {
  const simulator = await simulate(t);
  const text = '[[fault:refuse]] Hello';
  const [choice] = JSON.parse((await ask(simulator, chat(text))).text).choices;
  t.match(choice, {
    finish_reason: 'stop',
    message: { content: null, refusal: 'Simulated refusal of: Hello' },
  });
  const heard = await ask(simulator, chat(text, { stream: true }));
  const deltas = heard.events.slice(0, -1).map((event) => JSON.parse(event).choices[0].delta);
  t.equal(deltas.map(({ refusal }) => refusal ?? '').join(''), choice.message.refusal);
  t.equal(deltas.map(({ content }) => content ?? '').join(''), '');
});

test('finish says the very word, a directive in the header counts too', async (t) => {
  const simulator = await simulate(t);
  const header = { 'x-simulator-fault': 'finish=content_filter' };
  const [choice] = JSON.parse((await ask(simulator, chat('Hello'), header)).text).choices;
  t.match(choice, { finish_reason: 'content_filter', message: { content: /Hello/ } });
  const heard = await ask(simulator, chat('[[fault:finish=eos]] Hello', { stream: true }));
  t.equal(JSON.parse(heard.events.at(-2) ?? '').choices[0].finish_reason, 'eos');
});
