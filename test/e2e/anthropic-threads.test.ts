import { Anthropic } from 'anthropic1';
import { betaTool } from 'anthropic1/helpers/beta/json-schema';
import { type Test, test } from 'tap';
import { hashKey } from '../../src/keys/secret.js';
import { keptIn } from '../support/conversations.js';
import { startGateway, testKey } from '../support/gateway.js';
import { type Said, scriptedModel } from '../support/scripted-calls.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { startTranslated, type TranslatedStage } from '../support/translated.js';

const script: readonly Said[] = [
  { call: 'get_weather', city: 'Rome' },
  { call: 'get_weather', city: 'Oslo' },
  { text: 'Warmer in Rome.' },
  { text: 'You are welcome.' },
];
const otherKey = 'sk-other';
const question = 'Where is it warmer, Rome or Oslo?';
const system = 'Be brief.';
const getWeather = betaTool({
  name: 'get_weather',
  description: 'The weather of a city',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } as const,
  run: ({ city }) => `mild in ${city}`,
});

const upstreams = {
  chat: { kind: 'chat', target: {} },
  responses: { kind: 'chat', target: { responses: 'only' } },
  generateContent: { kind: 'generateContent', target: {} },
} as const;
type Upstream = keyof typeof upstreams;

function start(t: Test, protocol: Upstream, config: Record<string, unknown> = {}): Promise<TranslatedStage> {
  const { kind, target } = upstreams[protocol];
  return startTranslated(t, {
    kind,
    target,
    answer: scriptedModel(protocol, script),
    config: {
      ...keptIn(temporaryFolder(t)),
      keys: [testKey, otherKey].map((key) => ({ id: key, hash: hashKey(key), groups: ['default'] })),
      ...config,
    },
  });
}

const clientOf = ({ url }: TranslatedStage, apiKey = testKey): Anthropic =>
  new Anthropic({ apiKey, baseURL: url, maxRetries: 0 });
const ask = { model: 'm', max_tokens: 100, system, messages: [{ role: 'user' as const, content: question }] };

/** What each request to the upstream says, in its own words. */
const sent = ({ upstream }: TranslatedStage): string[] =>
  upstream.requests.map(({ body }) => body.toString());

function isWhole(t: Test, bodies: readonly string[]): void {
  t.equal(bodies.length, 3);
  const said = [question, 'mild in Rome', 'mild in Oslo'];
  for (const [turn, body] of bodies.entries()) {
    for (const [index, words] of said.entries())
      t.equal(body.includes(words), index <= turn, `request ${turn}: ${words}`);
    t.match(body, system, 'the system text');
    t.match(body, 'The weather of a city', 'the tool');
    t.equal(body.includes('thread'), false);
  }
}

for (const protocol of Object.keys(upstreams) as Upstream[]) {
  test(`${protocol}: the tool runner's turns are whole requests`, async (t) => {
    const stage = await start(t, protocol);
    const runner = clientOf(stage).beta.messages.toolRunner({ ...ask, tools: [getWeather] });
    const last = await runner;
    t.match(last.content, [{ type: 'text', text: 'Warmer in Rome.' }]);
    isWhole(t, sent(stage));
  });

  test(`${protocol}: so are those of one that streams`, async (t) => {
    const stage = await start(t, protocol);
    const runner = clientOf(stage).beta.messages.toolRunner({ ...ask, tools: [getWeather], stream: true });
    let last: unknown = null;
    for await (const stream of runner) last = await stream.finalMessage();
    t.match(last, { content: [{ type: 'text', text: 'Warmer in Rome.' }] });
    isWhole(t, sent(stage));
  });
}

test('a thread goes on from any of its replies, and in another key it is unknown', async (t) => {
  const stage = await start(t, 'chat');
  const client = clientOf(stage);
  const thread = client.beta.messages.thread({ ...ask, tools: [getWeather] });
  const first = await thread.send();
  const continued = { type: 'continue', previous_message_id: first.id } as const;
  const results = [
    {
      role: 'user' as const,
      content: first.content.flatMap((block) =>
        block.type === 'tool_use'
          ? [{ type: 'tool_result' as const, tool_use_id: block.id, content: 'hot' }]
          : [],
      ),
    },
  ];
  for (const _ of [0, 1]) {
    const next = { model: 'm', max_tokens: 9, messages: results, thread: continued };
    await client.beta.messages.create(next);
    t.match(sent(stage).at(-1), question);
    t.match(sent(stage).at(-1), 'hot');
  }
  const other = clientOf(stage, otherKey).beta.messages.create({
    model: 'm',
    max_tokens: 9,
    messages: [],
    thread: continued,
  });
  const refusal = await other.then(
    () => null,
    (error: unknown) => error,
  );
  t.match(refusal, {
    status: 404,
    error: { error: { type: 'not_found_error', details: { error_code: 'thread_not_found' } } },
  });
  t.equal(stage.upstream.requests.length, 3);
});

test('the demo, whose upstream keeps no threads, is used without them', async (t) => {
  const { url } = await startGateway(t, { demo: 'simulator' });
  const client = new Anthropic({ apiKey: 'sk-demo', baseURL: url, maxRetries: 0 });
  const thread = client.beta.messages.toolRunner({
    ...ask,
    model: 'sim-text',
    tools: [getWeather],
    tool_choice: { type: 'tool', name: 'get_weather' },
    max_iterations: 3,
  });
  let turns = 0;
  for await (const _ of thread) turns++;
  t.ok(turns > 1);
  t.ok(JSON.stringify(thread.params.messages).includes('mild in'));
});

test('where nothing is kept the runner goes on without a thread', async (t) => {
  for (const config of [{ conversations: 'off' }]) {
    const stage = await start(t, 'chat', config);
    const last = await clientOf(stage).beta.messages.toolRunner({ ...ask, tools: [getWeather] });
    t.match(last.content, [{ type: 'text', text: 'Warmer in Rome.' }]);
    isWhole(t, sent(stage));
  }
});
