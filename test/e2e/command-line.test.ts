import { CohereClient } from 'cohere-ai';
import { test } from 'tap';
import { startGateway } from '../support/gateway.js';
import * as anthropic from '../support/sdks/anthropic.js';
import * as genai from '../support/sdks/genai.js';
import * as openai from '../support/sdks/openai.js';

const messages = [{ role: 'user' as const, content: 'weather in Oslo' }];
const answerText = 'Simulated answer to: weather in Oslo';
const model = 'sim-text';

test('every version of every SDK talks to the gateway as the command line starts it', async (t) => {
  const gateway = await startGateway(t, { workers: 2 });
  const at = { url: gateway.baseUrl };
  const ofOpenAi = openai.sdks.map(async (sdk) => {
    const client = openai.createClient(sdk, at);
    t.equal((await client.models.list()).data.length, 9);
    const created = await client.chat.completions.create({ model, messages });
    t.equal(created.choices[0]?.message.content, answerText, sdk.name);
    const streamed = openai.helpers(client).stream({ model, messages });
    t.equal(await streamed.finalContent(), answerText, `${sdk.name} streams`);
  });
  const ofAnthropic = anthropic.sdks.map(async (sdk) => {
    const client = anthropic.createClient(sdk, at);
    const body = { model, max_tokens: 100, messages };
    t.equal(anthropic.textOf(await client.messages.create(body)), answerText, sdk.name);
    t.equal(await client.messages.stream(body).finalText(), answerText, `${sdk.name} streams`);
  });
  const ofGenai = genai.sdks.map(async (sdk) => {
    const { models } = genai.createClient(sdk, at);
    const body = { model, contents: 'weather in Oslo' };
    t.equal(genai.textOf([await models.generateContent(body)]), answerText, sdk.name);
    const responses: genai.Response[] = [];
    for await (const each of await models.generateContentStream(body)) responses.push(each);
    t.equal(genai.textOf(responses), answerText, `${sdk.name} streams`);
  });
  const ofCohere = async (): Promise<void> => {
    const client = new CohereClient({ token: 'sk-demo', environment: gateway.baseUrl, maxRetries: 0 });
    const { results } = await client.rerank({
      model: 'sim-rerank',
      query: 'the capital of Norway',
      documents: ['Bergen is wet', 'Oslo is the capital of Norway'],
    });
    t.equal(results[0]?.index, 1, 'cohere');
  };
  await Promise.all([...ofOpenAi, ...ofAnthropic, ...ofGenai, ofCohere()]);
});
