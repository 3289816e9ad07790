import type { JsonObject } from '../../../src/wire/json.js';
import type { Answer, Ask, ToolSpec } from './client.js';
import { type Check, check, passes, type Scenario, type Scene } from './scenario.js';

const city: JsonObject = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};
/** Two tools with a city. */
export const tools: readonly ToolSpec[] = [
  { name: 'get_weather', description: 'The weather of a city.', parameters: city },
  { name: 'get_time', description: 'The time of a city.', parameters: city },
];
/** Makes the simulator call both. */
export const wantsTools = 'Tell me the weather in Rome and the time in Rome';
const outputs: Readonly<Record<string, string>> = { get_weather: 'sunny', get_time: 'noon' };

/** Returns the conversation with the answer and the results of its calls. */
export function continued(scene: Scene, ask: Ask, answer: Answer): Ask {
  const results = answer.calls.map((call) => ({ call, output: outputs[call.name] ?? '' }));
  return { ...ask, turns: [...ask.turns, ...answer.turns, ...scene.client.results(results)] };
}

/** What must hold for the answer with the calls. */
export function callChecks(answer: Answer, { client }: Scene): readonly Check[] {
  const ids = answer.calls.map(({ id }) => id);
  return [
    check(
      'the calls',
      answer.calls.map(({ name, args }) => [name, args]),
      tools.map(({ name }) => [name, { city: 'Rome' }]),
    ),
    check('the end', answer.finish, 'tools'),
    passes(
      'ids of the calls',
      client.protocol === 'generateContent' || (new Set(ids).size === 2 && !ids.includes('')),
      ids,
    ),
  ];
}

/** What must hold for the answer after the results. */
export function resultChecks(answer: Answer, { matrix }: Scene): readonly Check[] {
  return [
    check('no error', answer.error, null),
    check('the results', matrix.received().results.slice(0, 2), ['sunny', 'noon']),
    passes('the answer', /Tool result: sunny\n+Tool result: noon/.test(answer.text), answer.text),
    check('the end', answer.finish, 'stop'),
  ];
}

const parallelTools: Scenario = {
  name: 'two parallel tools',
  ask: ({ client, stream }) => ({ stream, tools, turns: client.user(wantsTools) }),
  checks: (answer, scene) => [
    ...callChecks(answer, scene),
    check('the tools', scene.matrix.received().tools, ['get_weather', 'get_time']),
  ],
};

const toolResult: Scenario = {
  name: 'tool result',
  ask: ({ client, stream }) => ({ stream, tools, turns: client.user(wantsTools) }),
  checks: async (first, scene, ask) =>
    resultChecks(
      await scene.matrix.send(scene.client, scene.model.name, continued(scene, ask, first)),
      scene,
    ),
};

/** Two rounds of calls. The simulator refuses reasoning with a signature that is not its own. */
const thinkingLoop: Scenario = {
  name: 'tool loop with reasoning',
  ask: ({ client, stream }) => ({ stream, tools, thinks: 'shown', turns: client.user(wantsTools) }),
  checks: async (first, scene, ask) => {
    const { matrix, client, model } = scene;
    const second = continued(scene, ask, first);
    const answer = await matrix.send(client, model.name, second);
    const afterResults = [...resultChecks(answer, scene)];
    const signatures = matrix.received().signatures;
    const turns = [...second.turns, ...answer.turns, ...client.user(wantsTools)];
    const third: Ask = { ...ask, turns };
    const again = await matrix.send(client, model.name, third);
    const last = await matrix.send(client, model.name, continued(scene, third, again));
    return [
      passes('the reasoning', first.reasoning !== '', first.reasoning),
      ...callChecks(first, scene),
      ...afterResults,
      passes('signatures', signatures.length > 0, signatures),
      check('no error in the second round', [again.error, last.error], [null, null]),
      check('the calls of the second round', again.calls.length, 2),
      passes('the last answer', /Tool result: sunny\n+Tool result: noon/.test(last.text), last.text),
    ];
  },
};

export const toolScenarios: readonly Scenario[] = [parallelTools, toolResult, thinkingLoop];
