import { test } from 'tap';
import { pixel } from '../suites/translation/image.js';
import { type ServedBy, startGateway } from '../support/gateway.js';
import { createClient, raised, sdks } from '../support/sdks/openai.js';
import {
  callsOf,
  compact,
  countInput,
  type FunctionTool,
  functionTool,
  type InputItem,
  inputOf,
  resultsOf,
  textFormatOf,
} from '../support/sdks/openai-responses.js';

const answerText = 'Simulated answer to: weather in Oslo';
const kinds = ['simulator', 'chat', 'messages', 'generateContent'] as const satisfies readonly ServedBy[];
/** Where each upstream finds the signature of its own reasoning, or the reasoning itself, which chat does not sign. */
const signatures = {
  simulator: /"encrypted_content": ?"/,
  chat: /"reasoning_content":"Simulated reasoning/,
  messages: /"signature":"/,
  generateContent: /"thoughtSignature":"/,
};
const schema = {
  type: 'object',
  properties: { title: { type: 'string' }, done: { type: 'boolean' } },
  required: ['title', 'done'],
  additionalProperties: false,
};

for (const sdk of sdks) {
  for (const kind of kinds) {
    const served = `${sdk.name} on ${kind}`;

    test(`${served}: a response has every field`, async (t) => {
      const client = createClient(sdk, await startGateway(t, { demo: kind }));
      const { data, response } = await client.responses
        .create({
          model: 'sim-text',
          input: 'weather in Oslo',
          instructions: 'Be brief.',
          temperature: 0.5,
          metadata: { team: 'a' },
        })
        .withResponse();
      t.equal(data.output_text, answerText);
      t.match(data, {
        id: /^resp_/,
        object: 'response',
        created_at: Number,
        status: 'completed',
        error: null,
        incomplete_details: null,
        instructions: 'Be brief.',
        model: 'sim-text',
        temperature: 0.5,
        metadata: { team: 'a' },
        output: [
          {
            id: /^msg_/,
            type: 'message',
            status: 'completed',
            role: 'assistant',
            content: [{ type: 'output_text', text: answerText, annotations: [] }],
          },
        ],
      });
      const { usage } = data;
      t.ok((usage?.input_tokens ?? 0) > 0 && (usage?.output_tokens ?? 0) > 0);
      t.equal(usage?.total_tokens, (usage?.input_tokens ?? 0) + (usage?.output_tokens ?? 0));
      t.match(usage, {
        input_tokens_details: { cached_tokens: 0 },
        output_tokens_details: { reasoning_tokens: 0 },
      });
      t.match(data, { _request_id: response.headers.get('x-request-id') });
    });

    test(`${served}: a limit that is hit makes the response incomplete`, async (t) => {
      const client = createClient(sdk, await startGateway(t, { demo: kind }));
      const response = await client.responses.create({
        model: 'sim-text',
        input: '[[fault:long=100]] a',
        max_output_tokens: 20,
      });
      t.match(response, {
        status: 'incomplete',
        incomplete_details: { reason: 'max_output_tokens' },
        output: [{ type: 'message', status: 'incomplete' }],
        usage: { output_tokens: 20 },
      });
    });

    test(`${served}: items of all kinds of messages`, async (t) => {
      const client = createClient(sdk, await startGateway(t, { demo: kind }));
      const seen = await client.responses.create({
        model: 'sim-text',
        input: [
          { role: 'developer', content: 'Be brief.' },
          { role: 'user', content: 'hello' },
          { role: 'assistant', content: 'hello yourself' },
          {
            role: 'user',
            content: [
              { type: 'input_image', image_url: `data:image/png;base64,${pixel}`, detail: 'low' },
              { type: 'input_text', text: 'what is this' },
            ],
          },
        ],
      });
      t.equal(seen.output_text, 'Simulated answer to: what is this (1 image)');
    });

    test(`${served}: function calls and their results`, async (t) => {
      const client = createClient(sdk, await startGateway(t, { demo: kind }));
      const tools = [functionTool('get_weather'), functionTool('find_hotel')];
      const input: InputItem[] = [{ role: 'user', content: 'weather and hotel in Oslo' }];
      const first = await client.responses.create({ model: 'sim-text', input, tools, store: false });
      t.equal(first.status, 'completed');
      t.match(callsOf(first), [
        {
          id: String,
          call_id: String,
          name: 'get_weather',
          arguments: '{"city":"Oslo"}',
          status: 'completed',
        },
        {
          id: String,
          call_id: String,
          name: 'find_hotel',
          arguments: '{"city":"Oslo"}',
          status: 'completed',
        },
      ]);
      t.equal(new Set(first.output.map((item) => item.id)).size, first.output.length);
      input.push(...inputOf(first.output), ...resultsOf(first, 'fine'));
      const second = await client.responses.create({ model: 'sim-text', input, tools, store: false });
      t.equal(second.output_text.match(/Tool result: .*fine/g)?.length, 2);
      const forced = await client.responses.create({
        model: 'sim-text',
        input: 'hello',
        tools,
        tool_choice: { type: 'function', name: 'find_hotel' },
      });
      t.match(callsOf(forced), [{ name: 'find_hotel' }]);
      const none = await client.responses.create({
        model: 'sim-text',
        input: 'weather in Oslo',
        tools,
        tool_choice: 'none',
      });
      t.equal(none.output_text, answerText);
    });

    test(`${served}: reasoning goes back as it came through a loop of tool calls`, async (t) => {
      const gateway = await startGateway(t, { demo: kind });
      const client = createClient(sdk, gateway);
      const settings = {
        model: 'sim-text',
        store: false,
        include: ['reasoning.encrypted_content' as const],
        reasoning: { effort: 'low' as const, summary: 'auto' as const },
        tools: [functionTool('get_weather')],
      };
      const input: InputItem[] = [{ role: 'user', content: 'weather in Oslo' }];
      const first = await client.responses.create({ ...settings, input });
      const [thought] = first.output;
      t.match(thought, {
        id: String,
        type: 'reasoning',
        summary: [{ type: 'summary_text', text: /^Simulated reasoning/ }],
      });
      t.match(thought, { encrypted_content: /./ });
      t.match(callsOf(first), [{ name: 'get_weather' }]);
      t.ok((first.usage?.output_tokens_details.reasoning_tokens ?? 0) > 0);
      input.push(...inputOf(first.output), ...resultsOf(first, '4 degrees'));
      const second = await client.responses.create({ ...settings, input });
      t.match(second.output_text, /Tool result: .*4 degrees/);
      const sent = gateway.simulator.lastRequest()?.body.toString();
      t.match(sent, signatures[kind]);
      t.notMatch(sent, /gw1\./, 'in its own form');
      input.push(...inputOf(second.output), { role: 'user', content: 'thanks' });
      t.match((await client.responses.create({ ...settings, input })).output_text, /answer to: thanks$/);
    });

    test(`${served}: output that fits a JSON schema, read by the helper`, async (t) => {
      const client = createClient(sdk, await startGateway(t, { demo: kind }));
      const format = { type: 'json_schema' as const, name: 'note', schema, strict: true };
      const plain = await client.responses.create({
        model: 'sim-text',
        input: 'weather in Oslo',
        text: { format },
      });
      t.match(JSON.parse(plain.output_text), { title: answerText, done: Boolean });
      const parsed = await client.responses.parse({
        model: 'sim-text',
        input: 'weather in Oslo',
        text: { format: textFormatOf(sdk)(format, (text) => JSON.parse(text) as { title: string }) },
      });
      t.match(parsed.output_parsed, { title: answerText });
    });

    test(`${served}: a conversation is compacted and goes on`, async (t) => {
      const client = createClient(sdk, await startGateway(t, { demo: kind }));
      const input: InputItem[] = [
        { role: 'user', content: 'my name is Ada' },
        { role: 'assistant', content: 'hello Ada' },
        { role: 'user', content: 'weather in Oslo' },
      ];
      const compacted = await compact(client, { model: 'sim-text', input });
      t.match(compacted, { id: /^resp_/, object: 'response.compaction', created_at: Number });
      t.match(compacted.output.at(-1), { id: String, type: 'compaction', encrypted_content: String });
      t.ok(compacted.usage.output_tokens > 0);
      const next = await client.responses.create({
        model: 'sim-text',
        input: [...inputOf(compacted.output), { role: 'user', content: 'and in Bergen' }],
      });
      t.match(next.output_text, /answer to: (.|\n)*and in Bergen/);
      const changed = inputOf(compacted.output).map((item) =>
        item.type === 'compaction' ? { ...item, encrypted_content: `${item.encrypted_content}x` } : item,
      );
      if (kind === 'simulator') {
        const error = await raised(sdk, client.responses.create({ model: 'sim-text', input: changed }));
        t.equal(error.status, 400, 'it is the upstream’s own, which says so');
      } else {
        const without = await client.responses.create({ model: 'sim-text', input: changed });
        t.match(without.output_text, /answer to: (.|\n)*weather in Oslo/, 'what nobody can open is left out');
      }
    });

    test(`${served}: the tokens of an input are counted`, async (t) => {
      const client = createClient(sdk, await startGateway(t, { demo: kind }));
      const counted = await countInput(client, { model: 'sim-text', input: 'weather in Oslo' });
      t.match(counted, { object: 'response.input_tokens', input_tokens: Number });
      t.ok(counted.input_tokens > 0);
    });

    test(`${served}: a trigger at the end of the input compacts as well`, async (t) => {
      const client = createClient(sdk, await startGateway(t, { demo: kind }));
      const input = [
        { role: 'user', content: 'weather in Oslo' },
        { type: 'compaction_trigger' },
      ] as unknown as InputItem[];
      const response = await client.responses.create({ model: 'sim-text', input });
      t.match(response.output, [{ type: 'compaction', encrypted_content: String }]);
      const next = await client.responses.create({
        model: 'sim-text',
        input: [...inputOf(response.output), { role: 'user', content: 'hello' }],
      });
      t.match(next.output_text, /answer to: (.|\n)*hello/);
    });
  }

  for (const kind of ['chat', 'messages', 'generateContent'] as const) {
    test(`${sdk.name} on ${kind}: what only the protocol's own upstream can do is refused by name`, async (t) => {
      const gateway = await startGateway(t, { demo: kind });
      const client = createClient(sdk, gateway);
      const bad: readonly (readonly [object, string])[] = [
        [{ previous_response_id: 'resp_1' }, 'previous_response_id'],
        [{ conversation: 'conv_1' }, 'conversation'],
        [{ background: true }, 'background'],
        [{ input: [{ type: 'item_reference', id: 'msg_1' }] }, 'input[0]'],
      ];
      for (const [more, param] of bad) {
        const error = await raised(sdk, client.responses.create({ model: 'sim-text', input: 'a', ...more }));
        t.ok(error instanceof sdk.module.BadRequestError, param);
        t.match(error, { type: 'invalid_request_error', code: 'unsupported_parameter' }, param);
        t.ok(error.param?.startsWith(param), `${error.param} is ${param}`);
      }
      t.equal(gateway.simulator.state().totalRequests, 0);
    });

    test(`${sdk.name} on ${kind}: tools in namespaces are called under both names, and so are their results`, async (t) => {
      const client = createClient(sdk, await startGateway(t, { demo: kind }));
      const tools = ['travel', 'sports'].map((name) => ({
        type: 'namespace',
        name,
        description: `All of ${name}`,
        tools: [functionTool(name === 'travel' ? 'find_hotel' : 'find_match')],
      })) as unknown as FunctionTool[];
      const input: InputItem[] = [{ role: 'user', content: 'hotel in Oslo' }];
      const first = await client.responses.create({ model: 'sim-text', input, tools });
      t.match(callsOf(first), [{ name: 'find_hotel', namespace: 'travel', arguments: '{"city":"Oslo"}' }]);
      input.push(...inputOf(first.output), ...resultsOf(first, 'fine'));
      const second = await client.responses.create({ model: 'sim-text', input, tools });
      t.match(second.output_text, /Tool result: .*fine/);
    });
  }

  for (const kind of ['simulator', 'chat'] as const) {
    test(`${sdk.name} on ${kind}: a custom tool takes free text`, async (t) => {
      const client = createClient(sdk, await startGateway(t, { demo: kind }));
      const tools = [{ type: 'custom' as const, name: 'run_query', description: 'Runs a query' }];
      const input: InputItem[] = [{ role: 'user', content: 'query all' }];
      const first = await client.responses.create({ model: 'sim-text', input, tools });
      const call = first.output.find((item) => item.type === 'custom_tool_call');
      t.match(call, { call_id: String, name: 'run_query', input: 'query all' });
      input.push(...inputOf(first.output), {
        type: 'custom_tool_call_output',
        call_id: call?.call_id ?? '',
        output: '7 rows',
      });
      const second = await client.responses.create({ model: 'sim-text', input, tools });
      t.match(second.output_text, /Tool result: .*7 rows/);
    });
  }
}
