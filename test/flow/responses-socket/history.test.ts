import { test } from 'tap';
import { ResponseHistory } from '../../../src/flow/responses-socket/socket.js';

const bodyOf = (fields: object) => Buffer.from(JSON.stringify({ stream: true, model: 'm', ...fields }));
const completed = (id: string, ...output: object[]) =>
  JSON.stringify({ type: 'response.completed', response: { id, output } });
const user = (content: string) => ({ type: 'message', role: 'user', content });

/** A history with the room that it has. */
function make({ most = 1000, limit = 10_000 } = {}) {
  const room = {
    used: 0,
    hold(bytes: number) {
      if (bytes > limit) return false;
      room.used = bytes;
      return true;
    },
  };
  return { room, history: new ResponseHistory(room, most) };
}

const sent = (history: ResponseHistory, fields: object, isKnown = false) => {
  const { body, previousId } = history.begin(bodyOf(fields), isKnown);
  return { ...(JSON.parse(body.toString()) as Record<string, unknown>), previousId };
};

test('a call that goes on from the newest response gets all that was said', (t) => {
  const { history } = make();
  sent(history, { input: 'one' });
  history.onEvent('{"type":"response.created","response":{"id":"resp_1"}}', false);
  history.onEvent(completed('resp_1', { type: 'message', text: 'two' }), false);
  const before = [user('one'), { type: 'message', text: 'two' }];
  t.strictSame(sent(history, { previous_response_id: 'resp_1', input: 'three' }), {
    stream: true,
    model: 'm',
    input: [...before, user('three')],
    previousId: null,
  });
  history.onEvent(completed('resp_2', { type: 'message', text: 'four' }), false);
  const all = [...before, user('three'), { type: 'message', text: 'four' }];
  t.match(sent(history, { previous_response_id: 'resp_2', input: [] }), { input: all });
  t.end();
});

test('who knows the response gets the new items alone, and the history goes on', (t) => {
  const { history } = make();
  sent(history, { store: false, input: 'one' });
  history.onEvent(completed('resp_1'), true);
  t.match(sent(history, { store: false, previous_response_id: 'resp_1', input: 'two' }, true), {
    input: 'two',
    previousId: 'resp_1',
  });
  history.onEvent(completed('resp_2'), true);
  const input = [user('one'), user('two'), user('three')];
  t.match(sent(history, { store: false, previous_response_id: 'resp_2', input: 'three' }), { input });
  t.end();
});

test('what an upstream is to store is not kept here, and neither is what did not come to its end', (t) => {
  const { history, room } = make();
  sent(history, { input: 'one' });
  history.onEvent(completed('resp_1'), true);
  t.equal(room.used, 0);
  sent(history, { store: false, input: 'one' });
  history.onEvent('{"type":"response.failed","response":{"id":"resp_1","output":[]}}', true);
  t.equal(room.used, 0);
  const asked = { store: false, previous_response_id: 'resp_1', input: 'two' };
  t.match(sent(history, asked), { input: 'two', previousId: 'resp_1', previous_response_id: 'resp_1' });
  // Its beginning is not known, so neither is the whole of it.
  history.onEvent(completed('resp_2'), true);
  t.equal(room.used, 0);
  t.end();
});

test('a call that fails leaves the newest response as it was', (t) => {
  const { history } = make();
  sent(history, { input: 'one' });
  history.onEvent(completed('resp_1'), false);
  sent(history, { previous_response_id: 'resp_1', input: 'bad' });
  history.onEvent('{"type":"error","status":500}', false);
  t.match(sent(history, { previous_response_id: 'resp_1', input: 'good' }), {
    input: [user('one'), user('good')],
  });
  t.end();
});

test('a conversation that is too long, or for which there is no room, is not kept', (t) => {
  const long = 'x'.repeat(2000);
  for (const limits of [{ most: 1000 }, { most: 10_000, limit: 1000 }]) {
    const { history, room } = make(limits);
    sent(history, { input: 'short' });
    history.onEvent(completed('resp_1'), false);
    const used = room.used;
    t.ok(used > 0);
    sent(history, { previous_response_id: 'resp_1', input: long });
    history.onEvent(completed('resp_2'), false);
    t.match(sent(history, { previous_response_id: 'resp_2', input: 'x' }), { previousId: 'resp_2' });
    history.clear();
    t.equal(room.used, 0);
  }
  t.end();
});

test('a body that is not valid is left to its validation', (t) => {
  const { history } = make();
  for (const text of ['{"input":5}', '{"previous_response_id":{},"input":"x"}']) {
    const body = Buffer.from(text);
    t.strictSame(history.begin(body, false), { body, previousId: null });
  }
  t.end();
});
