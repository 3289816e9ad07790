import { test } from 'tap';
import { addEvent, addWhole } from '../../../src/console/playground/answer-readers.js';
import { emptyAnswer, turnOf } from '../../../src/console/playground/text-answer.js';
import { textRequest } from '../../../src/console/playground/text-request.js';
import { textProtocols } from '../../../src/conversation/request.js';
import { startGateway } from '../../support/gateway.js';
import { forcedTool, read, send, settingsWith, shownThinking } from './asked.js';

const user = (text: string) => ({ role: 'user', text }) as const;

for (const protocol of textProtocols) {
  test(`${protocol}: a streamed answer reads as the whole one`, async (t) => {
    const { url } = await startGateway(t, { demo: 'simulator' });
    const ask = async (stream: boolean) => {
      const settings = settingsWith({ stream, system: 'Be brief.', maxTokens: 200, temperature: 0.5 });
      const response = await send(url, textRequest(protocol, settings, [user("What's a gateway?")]));
      t.equal(response.status, 200);
      t.match(response.headers.get('content-type'), stream ? /event-stream/ : /json/);
      return read(protocol, response);
    };
    const [streamed, whole] = await Promise.all([ask(true), ask(false)]);
    t.not(whole.text, '');
    t.equal(streamed.text, whole.text);
    t.ok((whole.tokens?.input ?? 0) > 0 && (whole.tokens?.output ?? 0) > 0, 'tokens are reported');
    t.strictSame(streamed.tokens, whole.tokens);
    t.type(whole.finish, 'string');
    t.equal(streamed.finish, whole.finish);
    t.equal(streamed.error, null);
  });

  test(`${protocol}: thinking is kept apart from the text`, async (t) => {
    const { url } = await startGateway(t, { demo: 'simulator' });
    for (const stream of [true, false]) {
      const settings = settingsWith({ stream, extra: shownThinking(protocol) });
      const response = await send(url, textRequest(protocol, settings, [user('Think about rain.')]));
      const answer = await read(protocol, response);
      t.not(answer.reasoning, '', `stream: ${stream}`);
      t.not(answer.text, '');
      t.notOk(answer.text.includes(answer.reasoning));
      t.ok((answer.tokens?.reasoning ?? 0) > 0, 'its tokens are told');
    }
  });

  test(`${protocol}: a call of a tool is read, and the next text answers it`, async (t) => {
    const { url } = await startGateway(t, { demo: 'simulator' });
    for (const stream of [true, false]) {
      const first = user('Weather in Rome?');
      const forced = settingsWith({ stream, extra: forcedTool(protocol) });
      const called = await read(protocol, await send(url, textRequest(protocol, forced, [first])));
      t.equal(called.calls.length, 1, `stream: ${stream}`);
      t.equal(called.calls[0]?.name, 'get_weather');
      t.type((JSON.parse(called.calls[0]?.arguments ?? '') as { city?: unknown }).city, 'string');

      const { tools } = forced.extra;
      const next = settingsWith({ stream, extra: tools === undefined ? {} : { tools } });
      const turns = [first, turnOf(called), user('Sunny, 24 degrees')];
      const response = await send(url, textRequest(protocol, next, turns));
      t.equal(response.status, 200);
      t.not((await read(protocol, response)).text, '');
    }
  });

  test(`${protocol}: an error inside a stream is told`, async (t) => {
    const { url } = await startGateway(t, { demo: 'simulator' });
    const settings = settingsWith({ stream: true });
    const turns = [
      user('[[fault:error-event after=4]] Tell me of rain and wind and of what comes after them.'),
    ];
    const answer = await read(protocol, await send(url, textRequest(protocol, settings, turns)));
    t.type(answer.error, 'string');
    t.not(answer.error, '');
  });

  test(`${protocol}: a conversation goes on`, async (t) => {
    const { url } = await startGateway(t, { demo: 'simulator' });
    const turns = [user('Hello'), { role: 'assistant', text: 'Hi.', calls: [] } as const, user('And now?')];
    const response = await send(url, textRequest(protocol, settingsWith({}), turns));
    t.equal(response.status, 200);
    t.not((await read(protocol, response)).text, '');
  });
}

test('what is no JSON, or has another form, adds nothing', async (t) => {
  for (const protocol of textProtocols) {
    const answer = emptyAnswer();
    for (const data of ['[DONE]', '{', '3', 'null', '[]', '{"choices":[3],"candidates":[null],"type":7}'])
      addEvent(protocol, answer, data);
    t.equal(addWhole(protocol, answer, '<html>'), false);
    t.equal(addWhole(protocol, answer, '{"choices":{},"output":[1],"content":"x","candidates":1}'), true);
    t.match(answer, { text: '', reasoning: '', calls: [], tokens: null, error: null });
  }
});

test('a responses stream that fails says why', async (t) => {
  const failed = emptyAnswer();
  const response = { status: 'failed', error: { code: 'server_error', message: 'It broke.' } };
  addEvent('responses', failed, JSON.stringify({ type: 'response.failed', response }));
  t.match(failed, { error: 'It broke.', finish: 'failed' });
});

test('the tokens of messages are those of its last report, with what was cached', async (t) => {
  const answer = emptyAnswer();
  const usage = { input_tokens: 5, cache_read_input_tokens: 20, output_tokens: 1 };
  addEvent('messages', answer, JSON.stringify({ type: 'message_start', message: { usage } }));
  addEvent(
    'messages',
    answer,
    JSON.stringify({ type: 'message_delta', delta: {}, usage: { output_tokens: 9 } }),
  );
  t.strictSame(answer.tokens, { input: 25, output: 9, cached: 20, reasoning: 0 });
});
