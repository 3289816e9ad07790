import { testKey } from '../support/gateway.js';
import {
  type ClientLine,
  mostSteps,
  type Session,
  type SessionOptions,
  testLine,
  weather,
  weatherTool,
} from './cells.js';
import { install, load } from './install.js';

interface Result {
  readonly text: string | PromiseLike<string>;
  readonly response: { readonly messages: readonly object[] } | PromiseLike<{ messages: readonly object[] }>;
  readonly fullStream: AsyncIterable<{
    readonly type: string;
    readonly error?: unknown;
    readonly text?: string;
  }>;
}

/** What is used of the package `ai`, which has the same names in both versions. */
interface Ai {
  generateText(call: object): Promise<Result>;
  streamText(call: object): Result;
  stepCountIs?(steps: number): unknown;
  isStepCount?(steps: number): unknown;
  jsonSchema(schema: object): unknown;
  tool(options: object): unknown;
}

type Model = (name: string) => unknown;
interface Provider extends Model {
  chat?: Model;
}
type Create = (options: object) => Provider;

/** A provider's model, with what it is told to reason. */
interface Used {
  readonly name: string;
  model(url: string): unknown;
  readonly reasoning: object;
}

const modules = await install('ai-sdk');

async function providersOf(version: string): Promise<readonly Used[]> {
  const { createOpenAI } = await load<{ createOpenAI: Create }>(modules, `${version}-openai`);
  const { createAnthropic } = await load<{ createAnthropic: Create }>(modules, `${version}-anthropic`);
  const { createGoogleGenerativeAI: createGoogle } = await load<{ createGoogleGenerativeAI: Create }>(
    modules,
    `${version}-google`,
  );
  const { createOpenAICompatible } = await load<{ createOpenAICompatible: Create }>(
    modules,
    `${version}-openai-compatible`,
  );
  const options = (url: string, path: string) => ({ baseURL: url + path, apiKey: testKey, name: 'gateway' });
  const openai = (url: string) => createOpenAI({ baseURL: `${url}/v1`, apiKey: testKey });
  const effort = { openai: { reasoningEffort: 'high', reasoningSummary: 'auto', forceReasoning: true } };
  const thinking = { type: 'enabled', budgetTokens: 2048 };
  const thinkingConfig = { includeThoughts: true, thinkingBudget: 2048 };
  return [
    { name: 'openai', model: (url) => openai(url)('gpt-6-sol'), reasoning: effort },
    { name: 'openai.chat', model: (url) => openai(url).chat?.('gpt-6-sol'), reasoning: effort },
    {
      name: 'anthropic',
      model: (url) => createAnthropic({ baseURL: `${url}/v1`, apiKey: testKey })('claude-sonnet-5'),
      reasoning: { anthropic: { thinking } },
    },
    {
      name: 'google',
      model: (url) => createGoogle({ baseURL: `${url}/v1beta`, apiKey: testKey })('gemini-3.8-flash'),
      reasoning: { google: { thinkingConfig } },
    },
    {
      name: 'openai-compatible',
      model: (url) => createOpenAICompatible(options(url, '/v1'))('m'),
      reasoning: { gateway: { reasoningEffort: 'high' } },
    },
  ];
}

/** A conversation whose tools the SDK calls itself. */
function open(ai: Ai, { model, reasoning }: Used, { url, stream, thinks, onText }: SessionOptions): Session {
  const messages: object[] = [];
  const stop = (ai.stepCountIs ?? ai.isStepCount)?.(mostSteps);
  const call = {
    model: model(url),
    messages,
    stopWhen: stop,
    tools: {
      [weatherTool.name]: ai.tool({
        description: weatherTool.description,
        inputSchema: ai.jsonSchema(weatherTool.schema),
        execute: weather,
      }),
    },
    ...(thinks ? { providerOptions: reasoning } : {}),
    // What goes wrong is in the stream, too.
    onError: () => {},
  };
  const ask = async (): Promise<Result> => {
    if (!stream) return ai.generateText(call);
    const result = ai.streamText(call);
    for await (const { type, error, text } of result.fullStream) {
      if (type === 'error') throw error;
      if (type === 'text-delta') onText?.(text ?? '');
    }
    return result;
  };
  return {
    async say(text, image) {
      const content = [{ type: 'text', text }, ...(image === undefined ? [] : [{ type: 'image', image }])];
      messages.push({ role: 'user', content });
      const result = await ask();
      messages.push(...(await result.response).messages);
      return result.text;
    },
  };
}

for (const version of ['ai6', 'ai7']) {
  const ai = await load<Ai>(modules, version);
  for (const used of await providersOf(version)) {
    const line: ClientLine = {
      name: `${version} ${used.name}`,
      open: (options) => open(ai, used, options),
    };
    testLine(line);
  }
}
