import { test } from 'tap';
import { ItemStates } from '../../src/protocols/responses/item-states.js';
import { parseEvent } from '../../src/wire/sse.js';
import { postJson } from '../support/post-json.js';
import { startTranslated } from '../support/translated.js';

/*
 * Streams of an upstream that wants to hold up a worker, or to fill it. A scan from each line or item over all the others
 * takes minutes to hours here: these tests would not end.
 */

test('an event of two million lines without a colon is read once', async (t) => {
  t.same(parseEvent(`data: x\n${'a\n'.repeat(2_000_000)}`), { event: null, data: 'x' });
  t.same(parseEvent(`${'a\n'.repeat(2_000_000)}data:y\n:\nevent:e`), { event: 'e', data: 'y' });
});

test('the items of the last event find those that came before in one pass', async (t) => {
  const many = 100_000;
  const states = new ItemStates();
  for (let index = 0; index < many; index++)
    states.of({ output_index: many + index, item: { type: 'reasoning', id: `r${index}` } });
  const output = Array.from({ length: many }, () => ({ type: 'message' }));
  t.equal(states.match(output).length, many);
  const again = states.match([{ type: 'reasoning' }, { type: 'reasoning' }, { type: 'reasoning', id: 'r0' }]);
  const first = [...states.all()];
  t.same(
    again.map(({ state }) => first.indexOf(state)),
    [1, 2, 0],
    'those without a name are taken in the order in which they came',
  );
});

const stream =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n' +
  'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"hi"}}]}\n\n';

/** A chunk of chat with a call, whose name or id is so long. */
function call(index: number, bytes: number): string {
  const tool = {
    index,
    id: `call_${index}`,
    type: 'function',
    function: { name: 'n'.repeat(bytes), arguments: '{}' },
  };
  return `data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [tool] } }] })}\n\n`;
}

function logprobs(bytes: number): string {
  const content = [{ token: 't'.repeat(bytes), logprob: -1, bytes: null, top_logprobs: [] }];
  return `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'x' }, logprobs: { content } }] })}\n\n`;
}

const mebibyte = 1024 * 1024;

for (const [name, part] of Object.entries({
  'names of calls': call,
  'log-probabilities': (_: number, bytes: number) => logprobs(bytes),
})) {
  test(`a translated stream of ${name} without end is broken off once too much of it is kept`, async (t) => {
    const stage = await startTranslated(t, {
      answer: ({ socket }) => {
        socket.write(stream);
        for (let index = 0; index < 40; index++) socket.write(part(index, 4 * mebibyte));
        socket.end('data: [DONE]\n\n');
      },
    });
    for (const [path, asked] of [
      ['/v1/responses', { input: 'x' }],
      ['/v1/messages', { messages: [{ role: 'user', content: 'x' }], max_tokens: 9 }],
    ] as const) {
      const answer = await postJson(
        stage.url + path,
        { model: 'm', stream: true, ...asked },
        { 'anthropic-version': '2023-06-01' },
      );
      t.match(await answer.text(), /The answer is too long to be (?:kept|translated)/, path);
    }
  });
}
