import { Anthropic } from 'anthropic1';
import { betaTool } from 'anthropic1/helpers/beta/json-schema';
import { test } from 'tap';
import { testKey } from '../support/gateway.js';
import { startStrictStage } from '../support/strict-upstream/stage.js';

const getWeather = betaTool({
  name: 'get_weather',
  description: 'The weather of a city',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } as const,
  run: ({ city }) => `sunny in ${city}`,
});
const other = betaTool({
  name: 'other',
  description: 'Another one',
  inputSchema: { type: 'object', properties: {} } as const,
  run: () => 'nothing',
});
const ask = {
  model: 'm',
  max_tokens: 4096,
  betas: ['inline-tools-2026-09-15'],
  messages: [{ role: 'user' as const, content: 'cell:chain' }],
  tools: [other],
};
const answer = 'The tools said: sunny in Rome, sunny in Oslo, sunny in Lima.';

for (const wire of ['chat', 'responses', 'generateContent'] as const) {
  test(`a tool that the tool runner adds on the way is called on ${wire}`, async (t) => {
    const { url, upstream } = await startStrictStage(t, wire);
    const client = new Anthropic({ apiKey: testKey, baseURL: url, maxRetries: 0 });
    const runner = client.beta.messages.toolRunner(ask);
    runner.addTools(getWeather);
    runner.removeTools('other');
    t.match((await runner).content.at(-1), { type: 'text', text: answer });
    const streamed = client.beta.messages.toolRunner({ ...ask, stream: true });
    streamed.addTools(getWeather);
    let last: unknown = null;
    for await (const stream of streamed) last = (await stream.finalMessage()).content.at(-1);
    t.match(last, { type: 'text', text: answer });
    t.strictSame([...new Set(upstream.heard.map(({ broken }) => broken))], [null]);
  });
}
