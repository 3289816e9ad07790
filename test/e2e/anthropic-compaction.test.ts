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
const ask = {
  model: 'm',
  max_tokens: 4096,
  betas: ['inline-tools-2026-09-15', 'compact-2026-09-04'],
  messages: [{ role: 'user' as const, content: 'cell:tool' }],
  tools: [],
};
const summary = 'The tools said: sunny in Rome.';

for (const wire of ['chat', 'responses', 'generateContent'] as const) {
  for (const stream of [false, true]) {
    test(`a tool runner's compaction on ${wire}${stream ? ', streamed' : ''}`, async (t) => {
      const { url, upstream } = await startStrictStage(t, wire);
      const client = new Anthropic({ apiKey: testKey, baseURL: url, maxRetries: 0 });
      const runner = client.beta.messages.toolRunner({ ...ask, stream });
      runner.addTools(getWeather);
      const answers = [];
      for await (const each of runner) {
        const { content, stop_reason } = 'finalMessage' in each ? await each.finalMessage() : each;
        answers.push({ content, stop_reason });
        if (answers.length === 1)
          runner.compactBeforeNextTurn({ type: 'summarize', instructions: 'Sum up.' });
      }
      t.match(answers[1], {
        content: [{ type: 'compaction', content: summary, tool_changes: [{ type: 'tool_addition' }] }],
        stop_reason: 'compaction',
      });
      const [, compacted = '', last = ''] = upstream.heard.map(({ body }) => body);
      t.match(compacted, 'Sum up.');
      t.match(last, summary);
      t.match(last, 'get_weather', 'the tool that was added before');
      t.notMatch(last, 'cell:tool', 'what was summed up');
      t.strictSame([...new Set(upstream.heard.map(({ broken }) => broken))], [null]);
    });
  }
}
