import { test } from 'tap';
import { pixel } from '../suites/translation/image.js';
import { type ServedBy, startGateway } from '../support/gateway.js';
import {
  type Client,
  createClient,
  type Message,
  type MessageParam,
  raised,
  sdks,
  textOf,
} from '../support/sdks/anthropic.js';

const answerText = 'Simulated answer to: weather in Oslo';
const kinds = ['simulator', 'chat', 'generateContent'] as const satisfies readonly ServedBy[];
/** Where each upstream finds the signature of its own reasoning, or the reasoning itself, which chat does not sign. */
const signatures = {
  simulator: /"signature":"/,
  chat: /"reasoning_content":"Simulated reasoning/,
  generateContent: /"thoughtSignature":"/,
};

/** A request with one user text. */
function asked(content: MessageParam['content']) {
  return { model: 'sim-text', max_tokens: 4096, messages: [{ role: 'user' as const, content }] };
}

function tool(name: string) {
  return {
    name,
    description: `Calls ${name}`,
    input_schema: {
      type: 'object' as const,
      properties: { city: { type: 'string' } },
      required: ['city'],
    },
  };
}

function callsOf(message: Message): readonly { readonly name: string; readonly input: unknown }[] {
  return message.content.flatMap((block) =>
    block.type === 'tool_use' ? [{ name: block.name, input: block.input }] : [],
  );
}

/** The turn that answers every call of a message. */
function results(message: Message, content: string): MessageParam {
  return {
    role: 'user',
    content: message.content.flatMap((block) =>
      block.type === 'tool_use' ? [{ type: 'tool_result' as const, tool_use_id: block.id, content }] : [],
    ),
  };
}

for (const sdk of sdks) {
  for (const kind of kinds) {
    const served = `${sdk.name} on ${kind}`;

    test(`${served}: a message has every field`, async (t) => {
      const client = createClient(sdk, await startGateway(t, { demo: kind }));
      const { data, response, request_id } = await client.messages
        .create({ ...asked('weather in Oslo'), system: 'Be brief.', metadata: { user_id: 'u' } })
        .withResponse();
      t.match(data, {
        id: /^msg_/,
        type: 'message',
        role: 'assistant',
        model: 'sim-text',
        content: [{ type: 'text', text: answerText }],
        stop_reason: 'end_turn',
        stop_sequence: null,
      });
      t.equal(data.content.length, 1);
      t.ok(data.usage.input_tokens > 0 && data.usage.output_tokens > 0);
      t.match(request_id, /^req_[0-9a-f]+$/);
      t.equal(request_id, response.headers.get('x-request-id'));
      t.match(data, { _request_id: request_id });
      t.equal(response.headers.get('x-gateway-path'), kind === 'simulator' ? 'exact' : 'translated');
    });

    test(`${served}: settings reach the model`, async (t) => {
      const client = createClient(sdk, await startGateway(t, { demo: kind }));
      const stopped = await client.messages.create({
        ...asked('weather in Oslo'),
        temperature: 0.5,
        top_k: 5,
        stop_sequences: [' in Oslo'],
      });
      t.equal(textOf(stopped), 'Simulated answer to: weather');
      // Upstreams of other protocols do not tell that it was a stop string, and which.
      const native = { stop_reason: 'stop_sequence', stop_sequence: ' in Oslo' };
      t.match(stopped, kind === 'simulator' ? native : { stop_reason: 'end_turn', stop_sequence: null });
      const short = await client.messages.create({ ...asked('weather in Oslo'), max_tokens: 2 });
      t.match(short, { stop_reason: 'max_tokens', usage: { output_tokens: 2 } });
      const seen = await client.messages.create(
        asked([
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: pixel } },
          { type: 'text', text: 'what is this' },
        ]),
      );
      t.equal(textOf(seen), 'Simulated answer to: what is this (1 image)');
    });

    test(`${served}: a tool call and its result, two calls at once, and a forced one`, async (t) => {
      const client = createClient(sdk, await startGateway(t, { demo: kind }));
      const tools = [tool('get_weather'), tool('find_hotel')];
      const first = await client.messages.create({ ...asked('weather in Oslo'), tools });
      t.equal(first.stop_reason, 'tool_use');
      t.strictSame(callsOf(first), [{ name: 'get_weather', input: { city: 'Oslo' } }]);
      const second = await client.messages.create({
        ...asked('weather in Oslo'),
        tools,
        messages: [
          { role: 'user', content: 'weather in Oslo' },
          { role: 'assistant', content: first.content },
          results(first, '4 degrees'),
        ],
      });
      t.equal(second.stop_reason, 'end_turn');
      t.match(textOf(second), /Tool result: .*4 degrees/);

      const both = await client.messages.create({ ...asked('weather and hotel in Oslo'), tools });
      t.strictSame(
        callsOf(both).map((call) => call.name),
        ['get_weather', 'find_hotel'],
      );
      const ids = both.content.flatMap((block) => (block.type === 'tool_use' ? [block.id] : []));
      t.equal(new Set(ids).size, 2);
      // The vendor's own pattern. An id that carries a signature is longer than others.
      t.ok(ids.every((id) => /^[a-zA-Z0-9_-]+$/.test(id)));
      const after = await client.messages.create({
        ...asked(''),
        tools,
        messages: [
          { role: 'user', content: 'weather and hotel in Oslo' },
          { role: 'assistant', content: both.content },
          results(both, 'fine'),
        ],
      });
      t.equal(textOf(after).match(/Tool result: .*fine/g)?.length, 2);
      const forced = await client.messages.create({
        ...asked('hello'),
        tools,
        tool_choice: { type: 'tool', name: 'find_hotel' },
      });
      t.strictSame(
        callsOf(forced).map((call) => call.name),
        ['find_hotel'],
      );
      const refused = await client.messages.create({
        ...asked('weather in Oslo'),
        tools,
        tool_choice: { type: 'none' },
      });
      t.equal(textOf(refused), answerText);
    });

    test(`${served}: thinking goes back as it came through a loop of tool calls`, async (t) => {
      const gateway = await startGateway(t, { demo: kind });
      const client = createClient(sdk, gateway);
      const settings = {
        model: 'sim-text',
        max_tokens: 8192,
        thinking: { type: 'enabled' as const, budget_tokens: 2048 },
        tools: [tool('get_weather')],
      };
      const messages: MessageParam[] = [{ role: 'user', content: 'weather in Oslo' }];
      const first = await client.messages.create({ ...settings, messages });
      const [thought] = first.content;
      t.match(thought, { type: 'thinking', thinking: /^Simulated reasoning/, signature: String });
      t.equal(first.stop_reason, 'tool_use');
      messages.push({ role: 'assistant', content: first.content }, results(first, '4 degrees'));
      const second = await client.messages.create({ ...settings, messages });
      t.match(textOf(second), /Tool result: .*4 degrees/);
      const sent = gateway.simulator.lastRequest()?.body.toString();
      t.match(sent, signatures[kind]);
      t.notMatch(sent, /gw1\./, 'in its own form');
      messages.push({ role: 'assistant', content: second.content }, { role: 'user', content: 'thanks' });
      t.match(textOf(await client.messages.create({ ...settings, messages })), /answer to: thanks$/);
    });

    test(`${served}: output that fits a JSON schema`, async (t) => {
      const client = createClient(sdk, await startGateway(t, { demo: kind }));
      const schema = {
        type: 'object',
        properties: { title: { type: 'string' }, done: { type: 'boolean' } },
        required: ['title', 'done'],
        additionalProperties: false,
      };
      const message = await client.messages.create({
        ...asked('weather in Oslo'),
        output_config: { format: { type: 'json_schema', schema } },
      });
      t.match(JSON.parse(textOf(message)), { title: answerText, done: Boolean });
    });

    test(`${served}: what coding agents send beside it all is understood`, async (t) => {
      const client = createClient(sdk, await startGateway(t, { demo: kind }));
      const cached = { cache_control: { type: 'ephemeral' as const } };
      const request = {
        ...asked('weather in Oslo'),
        system: [
          { type: 'text' as const, text: 'You are an agent.' },
          { type: 'text' as const, text: 'Be brief.', ...cached },
        ],
        messages: [
          { role: 'user' as const, content: 'hello' },
          { role: 'assistant' as const, content: [{ type: 'text' as const, text: 'hello yourself' }] },
          { role: 'user' as const, content: [{ type: 'text' as const, text: 'tell me more', ...cached }] },
          // Newer versions of the protocol have instructions in the middle of a conversation.
          { role: 'system' as 'user', content: 'It is late.' },
          { role: 'user' as const, content: 'thanks' },
        ],
        tools: Array.from({ length: 14 }, (_, index) => ({ ...tool(`tool_${index}`), ...cached })),
        thinking: { type: 'adaptive' as const },
        output_config: { effort: 'high' as const },
        metadata: { user_id: 'u' },
        context_management: { edits: [{ type: 'clear_tool_uses_20250919' as const }] },
        betas: ['one-2025-01-01', 'two-2025-02-02'],
      };
      const whole = await client.beta.messages.create(request);
      t.match(textOf(whole), /thanks$/);
      const streamed = await client.beta.messages.stream(request).finalMessage();
      t.match(textOf(streamed), /thanks$/);
    });

    test(`${served}: tokens are counted`, async (t) => {
      const gateway = await startGateway(t, { demo: kind });
      const client = createClient(sdk, gateway);
      const { max_tokens: _, ...short } = asked('weather in Oslo');
      const { max_tokens: __, ...long } = asked('weather in Oslo '.repeat(100));
      const few = await client.messages.countTokens(short);
      const many = await client.messages.countTokens({ ...long, system: 'Be brief.' });
      t.ok(few.input_tokens > 0);
      t.ok(many.input_tokens > few.input_tokens * 10);
      t.equal(gateway.simulator.state().totalRequests, kind === 'simulator' ? 2 : 0);
    });
  }

  test(`${sdk.name}: a beta call reaches an upstream of its protocol with its betas`, async (t) => {
    const gateway = await startGateway(t, { demo: 'messages' });
    const client = createClient(sdk, gateway);
    const answer = await client.beta.messages.create({
      ...asked('weather in Oslo'),
      betas: ['one-2025-01-01', 'two-2025-02-02'],
      context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] },
    });
    t.match(answer, { type: 'message', content: [{ type: 'text', text: answerText }] });
    const sent = gateway.simulator.lastRequest();
    t.equal(sent?.target, sdk.bearer ? '/v1/messages' : '/v1/messages?beta=true');
    const header = (name: string) => {
      const at = sent?.rawHeaders.findIndex((text) => text.toLowerCase() === name) ?? -1;
      return at === -1 ? null : sent?.rawHeaders[at + 1];
    };
    t.equal(header('anthropic-beta'), 'one-2025-01-01,two-2025-02-02');
    t.equal(header('anthropic-version'), sdk.bearer ? '2026-10-21' : '2023-06-01');
    t.equal(header('x-api-key'), 'upstream-key');
    t.equal(header('authorization'), null, 'the key of the client stays here');
    t.match(JSON.parse(sent?.body.toString() ?? ''), { context_management: { edits: [{}] } });
  });

  test(`${sdk.name}: models are listed page by page and retrieved`, async (t) => {
    const gateway = await startGateway(t, {
      demo: 'simulator',
      adapt: (config) => {
        const [first] = config.models;
        if (first === undefined) return config;
        const more = Array.from({ length: 6 }, (_, index) => ({ ...first, name: `model-${index}` }));
        return { ...config, models: [...config.models, ...more] };
      },
    });
    const client: Client = createClient(sdk, gateway);
    const names: string[] = [];
    for await (const model of client.models.list({ limit: 3 })) {
      t.match(model, { type: 'model', display_name: model.id, created_at: '2023-11-14T22:13:20Z' });
      names.push(model.id);
    }
    const expected = ['model-0', 'model-1', 'model-2', 'model-3', 'model-4', 'model-5', 'sim-text'];
    // With a bearer token the list is that of chat clients in a form that both can read.
    t.strictSame(sdk.bearer ? names.filter((name) => expected.includes(name)) : names, expected);
    t.match(await client.models.retrieve('sim-text'), { id: 'sim-text', type: 'model' });
    const missing = await raised(sdk, client.models.retrieve('nope'));
    t.ok(missing instanceof sdk.module.NotFoundError);
  });
}
