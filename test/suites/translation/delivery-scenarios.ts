import type { Ask } from './client.js';
import { check, passes, type Scenario } from './scenario.js';
import { callChecks, continued, resultChecks, tools, wantsTools } from './tool-scenarios.js';

/** The same two calls and their results, in an unusual form of the upstream. */
function delivered(name: string, directive: string): Scenario {
  return {
    name,
    ask: ({ client, stream }) => ({
      stream,
      tools,
      turns: client.user(`[[fault:${directive}]] ${wantsTools}`),
    }),
    checks: async (first, scene, ask) => [
      ...callChecks(first, scene),
      ...resultChecks(
        await scene.matrix.send(scene.client, scene.model.name, continued(scene, ask, first)),
        scene,
      ),
    ],
  };
}

const withoutArguments: Scenario = {
  name: 'calls without arguments',
  ask: ({ client, stream }) => ({
    stream,
    tools,
    turns: client.user(`[[fault:zero-args]] ${wantsTools}`),
  }),
  checks: async (first, scene, ask) => [
    check(
      'the calls',
      first.calls.map(({ name, args }) => [name, args]),
      tools.map(({ name }) => [name, {}]),
    ),
    ...resultChecks(
      await scene.matrix.send(scene.client, scene.model.name, continued(scene, ask, first)),
      scene,
    ),
  ],
};

/** A tool loop with reasoning that the client does not want to see: the signatures are carried all the same. */
const hiddenReasoning: Scenario = {
  name: 'tool loop with hidden reasoning',
  clients: ['responses', 'messages', 'generateContent'],
  ask: ({ client, stream }) => ({ stream, tools, thinks: 'hidden', turns: client.user(wantsTools) }),
  checks: async (first, scene, ask) => {
    const answer = await scene.matrix.send(scene.client, scene.model.name, continued(scene, ask, first));
    const checks = resultChecks(answer, scene);
    const { signatures } = scene.matrix.received();
    return [
      check('no reasoning', [first.reasoning, answer.reasoning], ['', '']),
      ...callChecks(first, scene),
      ...checks,
      passes('signatures', signatures.length > 0, signatures),
    ];
  },
};

/** Reasoning that only its vendor can read, together with signed reasoning. */
const redactedReasoning: Scenario = {
  name: 'tool loop with redacted reasoning',
  ask: ({ client, stream }) => ({
    stream,
    tools,
    thinks: 'shown',
    turns: client.user(`[[fault:redacted]] ${wantsTools}`),
  }),
  checks: async (first, scene, ask) => {
    const { matrix, client, model } = scene;
    const second: Ask = continued(scene, ask, first);
    const checks = resultChecks(await matrix.send(client, model.name, second), scene);
    const { signatures } = matrix.received();
    const least = model.wire(client.protocol) === 'messages' ? 2 : 1;
    return [...checks, passes('signatures', signatures.length >= least, signatures)];
  },
};

const refusal: Scenario = {
  name: 'refusal',
  ask: ({ client, stream }) => ({ stream, turns: client.user('[[fault:refuse]] Hello') }),
  checks: (answer, { client, model }) => {
    const wire = model.wire(client.protocol);
    const told = wire === 'generateContent' ? '' : 'Simulated refusal of: Hello';
    // Chat and responses have a field for the text, the others a reason for the end of the answer.
    const isFiltered = wire === 'messages' || wire === 'generateContent';
    const inField = !isFiltered && (client.protocol === 'chat' || client.protocol === 'responses');
    return [
      check('the words', [answer.text, answer.refusal], inField ? ['', told] : [told, '']),
      check('the end', answer.finish, isFiltered ? 'filtered' : 'stop'),
    ];
  },
};

export const deliveryScenarios: readonly Scenario[] = [
  delivered('calls that come at once', 'args-at-once'),
  delivered('calls that take turns', 'interleave'),
  withoutArguments,
  hiddenReasoning,
  redactedReasoning,
  refusal,
];
