import type { JsonObject } from '../../../src/wire/json.js';
import { pixel } from './image.js';
import { check, fetchesImages, passes, type Scenario } from './scenario.js';

const forecast: JsonObject = {
  type: 'object',
  properties: { city: { type: 'string' }, days: { type: 'integer' } },
  required: ['city', 'days'],
  additionalProperties: false,
};
/** Characters that a wrong encoding on the way would damage. */
const words = 'Hello “ü” ☕ 😀 "quoted" back\\slash\nline\ttab \u2028 \u0001 data: x\n\nevent: y';

const text: Scenario = {
  name: 'text',
  ask: ({ client, stream }) => ({ stream, turns: client.user(words) }),
  checks: (answer, { matrix, model, client, stream }) => {
    const { wire, model: name, stream: streamed } = matrix.received();
    return [
      check('the text', answer.text, `Simulated answer to: ${words}`),
      check('no reasoning', answer.reasoning, ''),
      check('no calls', answer.calls, []),
      check('the end', answer.finish, 'stop'),
      passes('the usage', (answer.usage?.input ?? 0) > 0 && (answer.usage?.output ?? 0) > 0, answer.usage),
      check('the protocol', [wire, name, streamed], [model.wire(client.protocol), 'sim-text', stream]),
    ];
  },
};

const conversation: Scenario = {
  name: 'second turn',
  ask: ({ client, stream }) => ({ stream, turns: client.user('One') }),
  checks: async (first, { matrix, model, client, stream }, { turns }) => {
    const next = [...turns, ...first.turns, ...client.user('Two')];
    const answer = await matrix.send(client, model.name, { stream, turns: next });
    return [
      check('no error', answer.error, null),
      check('the text', answer.text, 'Simulated answer to: Two'),
      passes('a longer input', (answer.usage?.input ?? 0) > (first.usage?.input ?? 0), answer.usage),
    ];
  },
};

const image: Scenario = {
  name: 'image',
  ask: ({ client, stream }) => ({
    stream,
    turns: client.user('What is this?', { mediaType: 'image/png', data: pixel }),
  }),
  checks: (answer, { matrix }) => [
    check('the text', answer.text, 'Simulated answer to: What is this? (1 image)'),
    check('the image', matrix.received().images, [{ mediaType: 'image/png', data: pixel }]),
  ],
};

const imageUrl: Scenario = {
  name: 'image by URL',
  ask: ({ client, stream, matrix }) => ({
    stream,
    turns: client.user('What is this?', { mediaType: 'image/png', url: matrix.imageUrl }),
  }),
  checks: (answer, { matrix, model, client }) => {
    const [found] = matrix.received().images;
    const fetched = fetchesImages(client, model);
    return [
      check('the text', answer.text, 'Simulated answer to: What is this? (1 image)'),
      check(
        'the image',
        found === undefined || 'url' in found ? found?.url : found.data,
        fetched ? pixel : matrix.imageUrl,
      ),
    ];
  },
};

const system: Scenario = {
  name: 'system prompt',
  ask: ({ client, stream }) => ({ stream, system: 'Be brief.', turns: client.user('Hello') }),
  checks: (answer, { matrix }) => [
    check('the text', answer.text, 'Simulated answer to: Hello'),
    check('the system prompt', matrix.received().system, 'Be brief.'),
  ],
};

const stop: Scenario = {
  name: 'stop sequence',
  clients: ['chat', 'messages', 'generateContent'],
  ask: ({ client, stream }) => ({ stream, stop: ['HALT', 'END'], turns: client.user('before HALT after') }),
  checks: (answer, { matrix, client }) => [
    check('the text', answer.text, 'Simulated answer to: before '),
    check('the stop sequences', matrix.received().stop, ['HALT', 'END']),
    ...(client.protocol === 'messages'
      ? [check('the sequence that was met', [answer.finish, answer.stopSequence], ['stopSequence', 'HALT'])]
      : [check('the end', answer.finish, 'stop')]),
  ],
};

const tokenLimit: Scenario = {
  name: 'token limit',
  ask: ({ client, stream }) => ({ stream, maxTokens: 16, turns: client.user('[[fault:long=100]] Go on') }),
  checks: (answer, { matrix }) => [
    check('the end', answer.finish, 'length'),
    passes('the beginning', answer.text.startsWith('Simulated answer to: '), answer.text),
    check('the limit', matrix.received().maxTokens, 16),
    check('the usage', answer.usage?.output, 16),
  ],
};

const jsonSchema: Scenario = {
  name: 'JSON schema',
  ask: ({ client, stream }) => ({ stream, schema: forecast, turns: client.user('Forecast for Rome') }),
  checks: (answer, { matrix }) => [
    check('the members', Object.keys(JSON.parse(answer.text) as object), ['city', 'days']),
    check('the schema', matrix.received().schema, forecast),
  ],
};

const reasoning: Scenario = {
  name: 'reasoning',
  ask: ({ client, stream }) => ({ stream, thinks: 'shown', turns: client.user('Think') }),
  checks: (answer, { matrix }) => [
    check('the text', answer.text, 'Simulated answer to: Think'),
    passes('the reasoning', answer.reasoning.endsWith('about: Think'), answer.reasoning),
    passes('what it cost', (answer.usage?.reasoning ?? 0) > 0, answer.usage),
    passes(
      'the effort',
      matrix.received().thinking === 'medium' || matrix.received().thinking === 8192,
      matrix.received().thinking,
    ),
  ],
};

const candidates: Scenario = {
  name: 'two candidates',
  clients: ['chat', 'generateContent'],
  ask: ({ client, stream }) => ({ stream, candidates: 2, turns: client.user('Hello') }),
  checks: (answer) => [
    check(
      'the texts',
      [answer.text, ...answer.more],
      ['Simulated answer to: Hello', 'Simulated answer to: Hello (answer 2)'],
    ),
  ],
};

const logprobs: Scenario = {
  name: 'log probabilities',
  clients: ['chat', 'generateContent', 'responses'],
  ask: ({ client, stream }) => ({ stream, logprobs: true, turns: client.user('Hello') }),
  checks: (answer) => [
    check('the text', answer.text, 'Simulated answer to: Hello'),
    passes('log probabilities', answer.logprobs > 0, answer.logprobs),
  ],
};

const topK: Scenario = {
  name: 'top k',
  clients: ['messages', 'generateContent'],
  ask: ({ client, stream }) => ({ stream, topK: 7, turns: client.user('Hello') }),
  checks: (answer, { matrix }) => [
    check('the text', answer.text, 'Simulated answer to: Hello'),
    check('top k', matrix.received().topK, 7),
  ],
};

const webSearch: Scenario = {
  name: 'web search',
  ask: ({ client, stream }) => ({ stream, searches: true, turns: client.user('Hello') }),
  checks: (answer, { matrix }) => [
    check('the text', answer.text, 'Simulated answer to: Hello'),
    check('the search', matrix.received().searches, true),
  ],
};

export const plainScenarios: readonly Scenario[] = [
  text,
  conversation,
  image,
  imageUrl,
  system,
  stop,
  tokenLimit,
  jsonSchema,
  reasoning,
  candidates,
  logprobs,
  topK,
  webSearch,
];
