import { test } from 'tap';
import { idOfBeginning, idOfEvents } from '../../src/conversation/answer-id.js';

const event = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
const first = event({ type: 'first', response: { object: 'response', id: 'resp_1', output: [] } });
const other = event({ type: 'ping' });

test('the id of an answer is read from what has come of it', async (t) => {
  t.equal(idOfBeginning(Buffer.from('{"object":"response","id":"resp_1","output":[{"id')), 'resp_1');
  for (const text of ['{"output":[{"id":"x"}],"id":"resp', '{"id":7}', '{"id":"a b/../c"}', '[', ''])
    t.equal(idOfBeginning(Buffer.from(text)), null, text);
});

test('of a stream it is read from its first events, behind those of another kind', async (t) => {
  const idOf = (run: string): string | null => idOfEvents(Buffer.from(run), 'response');
  for (const before of ['', other, ': a comment\n\n', other.repeat(3)]) {
    t.equal(idOf(before + first), 'resp_1', before);
    t.equal(idOf(before + first.slice(0, first.indexOf(',"output"'))), 'resp_1', `${before}, cut off`);
  }
  for (const run of [other, other + first.slice(0, 30), ': a comment\n\n', event({ response: {} }), ''])
    t.equal(idOf(run), null, run);
  t.equal(idOf(other.repeat(4) + first), null, 'of too late an event');
});
