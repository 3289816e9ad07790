import { type Test, test } from 'tap';
import { type TextProtocolName, textProtocols } from '../../src/conversation/request.js';
import { type JsonObject, parseObject } from '../../src/wire/json.js';
import { atOnce } from '../../src/wire/steps.js';
import {
  answers,
  before,
  bytes,
  claim,
  page,
  query,
  streams,
  text,
  units,
} from '../protocols/searched-answers.js';
import { framed } from '../support/events.js';
import { startGateway, testKey } from '../support/gateway.js';
import { postJson } from '../support/post-json.js';
import * as anthropic from '../support/sdks/anthropic.js';
import * as genai from '../support/sdks/genai.js';
import * as openai from '../support/sdks/openai.js';
import { startHttpUpstream } from '../support/upstream.js';

/** Kinds of the upstreams and how their targets search, by the protocols that they are called in. */
const targets: Readonly<Record<TextProtocolName, readonly [kind: string, target: JsonObject]>> = {
  chat: ['chat', { translation: { search: true } }],
  responses: ['chat', { responses: 'only' }],
  messages: ['messages', {}],
  generateContent: ['generateContent', {}],
};

const usage: Readonly<Record<TextProtocolName, JsonObject>> = {
  chat: { usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 } },
  responses: { usage: { input_tokens: 1, output_tokens: 2, total_tokens: 3 } },
  messages: {},
  generateContent: { usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 2 } },
};

/** A gateway whose models have the names of the protocols in which their upstreams, which have searched, are called. */
async function startSearching(t: Test) {
  const bodies: JsonObject[] = [];
  const upstream = await startHttpUpstream(t, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const wire = textProtocols.find((name) => request.url?.startsWith(`/${name}/`)) as TextProtocolName;
      const body = parseObject(Buffer.concat(chunks).toString()) ?? {};
      bodies.push(body);
      const isStream = body.stream === true || request.url?.includes('streamGenerateContent') === true;
      response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' });
      response.end(
        isStream
          ? streams[wire].map((event) => framed(wire, event)).join('')
          : JSON.stringify({ ...answers[wire], ...usage[wire] }),
      );
    });
  });
  const running = await startGateway(t, {
    upstreams: [],
    config: {
      upstreams: Object.fromEntries(
        textProtocols.map((name) => [
          name,
          { kind: targets[name][0], baseUrl: `${upstream.origin}/${name}/v1` },
        ]),
      ),
      models: Object.fromEntries(
        textProtocols.map((name) => [
          name,
          {
            protocols: textProtocols,
            targets: [{ upstream: name, model: `of-${name}`, ...targets[name][1] }],
          },
        ]),
      ),
    },
  });
  return { running, bodies };
}

/** The other protocols' models. */
const others = (client: TextProtocolName) => textProtocols.filter((name) => name !== client);

for (const sdk of anthropic.sdks) {
  test(`${sdk.name}: searches and sources of every upstream, and the next turn`, async (t) => {
    const { running, bodies } = await startSearching(t);
    const client = anthropic.createClient(sdk, running, { apiKey: testKey });
    const asked = {
      max_tokens: 1000,
      messages: [{ role: 'user' as const, content: 'Wie viele wohnen in Zürich?' }],
      tools: [{ type: 'web_search_20250305' as const, name: 'web_search' as const, max_uses: 2 }],
    };
    for (const model of others('messages')) {
      const whole = await client.messages.create({ model, ...asked });
      const streamed = await client.messages.stream({ model, ...asked }).finalMessage();
      for (const message of [whole, streamed]) {
        t.equal(anthropic.textOf(message), text, model);
        const cited = message.content.find(
          (block) => block.type === 'text' && (block.citations ?? []).length > 0,
        );
        t.match(cited, { citations: [{ type: 'web_search_result_location', ...page }] }, model);
        const types = message.content.map(({ type }) => type);
        const expected = model === 'chat' ? [] : ['server_tool_use', 'web_search_tool_result'];
        t.strictSame(
          types.filter((type) => type !== 'text'),
          expected,
          model,
        );
        if (model === 'chat') continue;
        t.match(
          message.content.find(({ type }) => type === 'server_tool_use'),
          { input: { query } },
        );
        t.equal(message.usage.server_tool_use?.web_search_requests, 1, model);
      }
      const messages = [
        ...asked.messages,
        { role: 'assistant' as const, content: streamed.content as anthropic.MessageParam['content'] },
        { role: 'user' as const, content: 'Und Bern?' },
      ];
      // The conversation goes on at the same upstream, and at one that speaks the client's own protocol.
      for (const next of [model, 'messages']) {
        await client.messages.create({ model: next, ...asked, messages });
        const sent = JSON.stringify(bodies.at(-1));
        t.match(sent, claim);
        t.notMatch(sent, /gw1|server_tool_use|web_search_tool_result/, `${model}, then ${next}`);
      }
    }
  });
}

for (const sdk of openai.sdks) {
  test(`${sdk.name}: searches and sources of every upstream in responses, and the next turn`, async (t) => {
    const { running, bodies } = await startSearching(t);
    const client = openai.createClient(sdk, running, { apiKey: testKey });
    const asked = { tools: [{ type: 'web_search' as 'web_search_preview' }], store: false };
    const input = [{ role: 'user' as const, content: 'Wie viele wohnen in Zürich?' }];
    for (const model of others('responses')) {
      const whole = await client.responses.create({ model, input, ...asked });
      let streamed = whole;
      const types: string[] = [];
      for await (const event of await client.responses.create({ model, input, ...asked, stream: true })) {
        types.push(event.type);
        if (event.type === 'response.completed') streamed = event.response as typeof whole;
      }
      t.ok(types.includes('response.output_text.annotation.added'), model);
      t.equal(types.includes('response.web_search_call.completed'), model !== 'chat', model);
      for (const response of [whole, streamed]) {
        const searches = response.output.filter(({ type }) => type === 'web_search_call');
        t.match(
          searches,
          model === 'chat' ? [] : [{ status: 'completed', action: { type: 'search', query } }],
        );
        const parts = response.output.flatMap((item) => (item.type === 'message' ? item.content : []));
        t.equal(parts.map((part) => (part.type === 'output_text' ? part.text : '')).join(''), text, model);
        const cited = parts.flatMap((part) => (part.type === 'output_text' ? part.annotations : []));
        t.match(cited, [{ type: 'url_citation', ...page }], model);
      }
      const history = [...input, ...streamed.output, { role: 'user' as const, content: 'Und Bern?' }];
      for (const next of [model, 'responses']) {
        await client.responses.create({ model: next, input: history as typeof input, ...asked });
        const sent = JSON.stringify(bodies.at(-1));
        t.match(sent, claim);
        t.notMatch(sent, /gw1|web_search_call"/, `${model}, then ${next}`);
      }
    }
  });

  test(`${sdk.name}: sources of every upstream in chat`, async (t) => {
    const { running } = await startSearching(t);
    const client = openai.createClient(sdk, running, { apiKey: testKey });
    const asked = {
      messages: [{ role: 'user' as const, content: 'Wie viele wohnen in Zürich?' }],
      web_search_options: {},
    };
    const url_citation = { start_index: units.start, end_index: units.end, ...page };
    for (const model of others('chat')) {
      const { choices } = await client.chat.completions.create({ model, ...asked });
      t.equal(choices[0]?.message.content, text, model);
      t.match(choices[0]?.message.annotations, [{ type: 'url_citation', url_citation }], model);
      const annotations: unknown[] = [];
      for await (const chunk of await client.chat.completions.create({ model, ...asked, stream: true })) {
        const delta = chunk.choices[0]?.delta as { annotations?: unknown[] } | undefined;
        annotations.push(...(delta?.annotations ?? []));
      }
      t.match(annotations, [{ type: 'url_citation', url_citation }], model);
    }
  });
}

for (const sdk of genai.sdks) {
  test(`${sdk.name}: the grounding of every upstream`, async (t) => {
    const { running } = await startSearching(t);
    const client = genai.createClient(sdk, running, testKey);
    const asked = { contents: 'Wie viele wohnen in Zürich?', config: { tools: [{ googleSearch: {} }] } };
    for (const model of others('generateContent')) {
      const whole = await client.models.generateContent({ model, ...asked });
      const streamed: genai.Response[] = [];
      for await (const response of await client.models.generateContentStream({ model, ...asked }))
        streamed.push(response);
      for (const responses of [[whole], streamed]) {
        t.equal(genai.textOf(responses), text, model);
        const grounding = responses.at(-1)?.candidates?.[0]?.groundingMetadata;
        t.match(grounding?.groundingChunks, [{ web: { uri: page.url, title: page.title } }], model);
        t.strictSame(grounding?.webSearchQueries ?? [], model === 'chat' ? [] : [query], model);
        const segment = grounding?.groundingSupports?.[0]?.segment;
        t.match(segment, { startIndex: bytes.start, endIndex: bytes.end, text: claim }, model);
        t.equal(Buffer.from(text).subarray(0, segment?.startIndex).toString(), before);
      }
    }
  });
}

test('what an answer loses is counted and stands in the row of the request, not in its head', async (t) => {
  const { running } = await startSearching(t);
  const answer = await postJson(`${running.url}/v1/chat/completions`, {
    model: 'messages',
    messages: [{ role: 'user', content: 'x' }],
    web_search_options: {},
  });
  await answer.json();
  t.equal(answer.headers.get('x-gateway-left-out'), null);
  const { requests } = atOnce(running.gateway.inspectSteps());
  t.match(requests[0], { leftOut: [], lostInAnswer: ['web_search_call'] });
  const { counters } = running.gateway.metrics();
  const [, labels] = counters.find(([name]) => name === 'gateway_left_out_total') ?? [];
  t.strictSame(labels, ['web_search_call', 'answer']);
});
