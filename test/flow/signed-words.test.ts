import { test } from 'tap';
import { readData, readEvents } from '../support/events.js';
import { at, listAt, textAt } from '../support/json.js';
import { startStrictStage } from '../support/strict-upstream/stage.js';
import { post } from '../support/translated.js';

const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const question = 'The weather, please. cell:thinking';

test('thoughts that Gemini CLI drops come back to the messages upstream that signed them, word for word', async (t) => {
  const { port, upstream } = await startStrictStage(t, 'messages');
  const contents: object[] = [{ role: 'user', parts: [{ text: question }] }];
  const ask = () =>
    post(port, '/v1beta/models/m:streamGenerateContent?alt=sse', {
      contents,
      tools: [{ functionDeclarations: [{ name: 'get_weather', parametersJsonSchema: schema }] }],
      generationConfig: { topP: 0.95, thinkingConfig: { includeThoughts: true, thinkingLevel: 'HIGH' } },
    });
  for (let round = 0; round < 2; round++) {
    const { body } = await ask();
    const parts = readEvents(body).flatMap((each) =>
      listAt(readData(each), 'candidates', 0, 'content', 'parts'),
    );
    t.ok(parts.some(({ thought }) => thought === true));
    // The first call of a turn gets this signature there where it has none.
    const kept = parts
      .filter(({ thought }) => thought !== true)
      .map((part) =>
        'functionCall' in part ? { thoughtSignature: 'skip_thought_signature_validator', ...part } : part,
      );
    const responses = kept.flatMap((part) => {
      const { functionCall } = part as { functionCall?: { name: string; id: string } };
      if (functionCall === undefined) return [];
      const { name, id } = functionCall;
      return [{ functionResponse: { id, name, response: { output: 'sunny in Rome' } } }];
    });
    contents.push({ role: 'model', parts: kept }, { role: 'user', parts: responses });
  }
  const last = await ask();
  t.equal(last.status, 200, last.body);
  t.match(last.body, 'The tools said');
  t.strictSame(
    upstream.heard.map(({ broken }) => broken),
    [null, null, null],
  );
  const sent: unknown = JSON.parse(upstream.heard[2]?.body ?? '');
  t.equal(textAt(sent, 'messages', 1, 'content', 0, 'thinking'), 'I think about thinking, step 1.');
  t.equal(textAt(sent, 'messages', 3, 'content', 0, 'thinking'), 'I think about thinking, step 2.');
});

test('so does reasoning of which a chat client has kept the calls alone', async (t) => {
  const { port, upstream } = await startStrictStage(t, 'messages');
  const messages: object[] = [{ role: 'user', content: question }];
  const ask = (stream: boolean) =>
    post(port, '/v1/chat/completions', {
      model: 'm',
      stream,
      messages,
      reasoning_effort: 'high',
      tools: [{ type: 'function', function: { name: 'get_weather', parameters: schema } }],
    });
  for (const stream of [true, false]) {
    const { body, status } = await ask(stream);
    t.equal(status, 200, body);
    const text = stream ? JSON.stringify(readEvents(body).map(({ data }) => data)) : body;
    t.match(text, 'I think about th');
    const [call] = stream
      ? readEvents(body.replace('data: [DONE]\n\n', '')).flatMap((each) =>
          listAt(readData(each), 'choices', 0, 'delta', 'tool_calls'),
        )
      : listAt(JSON.parse(body), 'choices', 0, 'message', 'tool_calls');
    const id = textAt(call, 'id');
    const called = { id, type: 'function', function: { name: 'get_weather', arguments: '{"city":"Rome"}' } };
    messages.push(
      { role: 'assistant', content: null, tool_calls: [called] },
      { role: 'tool', tool_call_id: id, content: 'sunny in Rome' },
    );
  }
  const last = await ask(true);
  t.equal(last.status, 200, last.body);
  const sent: unknown = JSON.parse(upstream.heard[2]?.body ?? '');
  t.equal(upstream.heard[2]?.broken, null);
  t.equal(textAt(sent, 'messages', 3, 'content', 0, 'thinking'), 'I think about thinking, step 2.');
  t.equal(at(sent, 'thinking', 'type'), 'enabled', 'it goes on thinking');
});

test('a turn that a chat of genai’s SDK keeps event by event is one message for the upstream, with its reasoning', async (t) => {
  for (const wire of ['chat', 'responses', 'messages'] as const) {
    const { port, upstream } = await startStrictStage(t, wire);
    const contents: object[] = [{ role: 'user', parts: [{ text: question }] }];
    let last = '';
    for (let round = 0; round < 3; round++) {
      const { body, status } = await post(port, '/v1beta/models/m:streamGenerateContent?alt=sse', {
        contents,
        tools: [{ functionDeclarations: [{ name: 'get_weather', parametersJsonSchema: schema }] }],
        generationConfig: { thinkingConfig: { includeThoughts: true, thinkingBudget: 2048 } },
      });
      t.equal(status, 200, body);
      last = body;
      const events = readEvents(body).map((each) => at(readData(each), 'candidates', 0, 'content'));
      t.ok(events.length > 3, 'it came in several');
      const response = { name: 'get_weather', response: { output: 'sunny in Rome' } };
      contents.push(...(events as object[]), { role: 'user', parts: [{ functionResponse: response }] });
    }
    t.match(last, 'The tools said');
    t.notOk(
      upstream.heard.some(({ broken }) => broken !== null),
      wire,
    );
    if (wire !== 'chat') continue;
    t.match(listAt(JSON.parse(upstream.heard[1]?.body ?? ''), 'messages'), [
      { role: 'user' },
      { role: 'assistant', content: 'Let me see.', reasoning_content: 'I think about thinking, step 1.' },
      { role: 'tool' },
    ]);
  }
});

test('a responses client that keeps calls alone returns what their upstream wants to see again', async (t) => {
  for (const wire of ['generateContent', 'messages', 'chat'] as const)
    for (const stream of [false, true]) {
      const { port, upstream } = await startStrictStage(t, wire);
      const input: object[] = [{ role: 'user', content: question }];
      const ask = async (more: object = {}) => {
        const { status, body } = await post(port, '/v1/responses', {
          model: 'm',
          stream,
          input,
          store: false,
          reasoning: { effort: 'high', summary: 'auto' },
          tools: [{ type: 'function', name: 'get_weather', parameters: schema }],
          ...more,
        });
        t.equal(status, 200, body);
        const last = stream
          ? at(readEvents(body).map(readData).at(-1), 'response')
          : (JSON.parse(body) as unknown);
        return listAt(last, 'output');
      };
      for (let round = 0; round < 2; round++)
        for (const item of await ask()) {
          if (item.type !== 'function_call') continue;
          t.match(item.call_id, /__thought__Z3cx/);
          t.match(item.id, /^fc_/);
          input.push(item, { type: 'function_call_output', call_id: item.call_id, output: 'sunny in Rome' });
        }
      t.match(JSON.stringify(await ask()), 'The tools said');
      t.strictSame(
        upstream.heard.map(({ broken }) => broken),
        [null, null, null],
        wire,
      );
      const included = await ask({ input: [input[0]], include: ['reasoning.encrypted_content'] });
      t.notMatch(JSON.stringify(included), '__thought__', 'it returns the items');
    }
});

test('a text between thinking and its call does not end the thinking of a responses client that keeps no reasoning', async (t) => {
  const { port, upstream } = await startStrictStage(t, 'messages');
  const input: object[] = [{ role: 'user', content: question }];
  const ask = async () => {
    const { status, body } = await post(port, '/v1/responses', {
      model: 'm',
      input,
      store: false,
      reasoning: { effort: 'high' },
      tools: [{ type: 'function', name: 'get_weather', parameters: schema }],
    });
    t.equal(status, 200, body);
    return listAt(JSON.parse(body), 'output');
  };
  for (let round = 0; round < 2; round++)
    for (const item of await ask()) {
      if (item.type === 'function_call')
        input.push({ type: 'message', role: 'assistant', content: 'Let me look.' }, item, {
          type: 'function_call_output',
          call_id: item.call_id,
          output: 'sunny in Rome',
        });
    }
  await ask();
  const sent: unknown = JSON.parse(upstream.heard[2]?.body ?? '');
  t.equal(upstream.heard[2]?.broken, null);
  t.equal(at(sent, 'thinking', 'type'), 'enabled', 'it goes on thinking');
  for (const index of [1, 3])
    t.match(listAt(sent, 'messages', index, 'content'), [
      { type: 'thinking', signature: /./ },
      { type: 'text', text: 'Let me look.' },
      { type: 'tool_use' },
    ]);
});
