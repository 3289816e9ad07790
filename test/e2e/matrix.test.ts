import { isDeepStrictEqual } from 'node:util';
import { type Test, test } from 'tap';
import { losses, lossOf } from '../suites/translation/losses.js';
import type { MatrixModel, Scenario, Scene } from '../suites/translation/scenario.js';
import { scenarios } from '../suites/translation/scenarios.js';
import { clients, models, startMatrix } from '../suites/translation/session.js';

/** The cells of the table of losses in which a scenario has shown them. */
const shown = new Set<string>();
const cell = (...names: readonly string[]): string => names.join(' / ');

/** @returns what did not come as it should */
async function play(scenario: Scenario, scene: Scene): Promise<unknown[]> {
  const { matrix, client, model } = scene;
  const wire = model.wire(client.protocol);
  const loss = lossOf(client.protocol, wire, scenario.name);
  const played = cell(client.protocol, wire, scenario.name);
  const ask = scenario.ask(scene);
  const answer = await matrix.send(client, model.name, ask);
  const { error } = answer;
  if (loss?.fate.kind === 'reject') {
    const param = loss.fate.param[client.protocol] ?? '?';
    const tellsParam = client.protocol === 'chat' || client.protocol === 'responses';
    shown.add(played);
    const isRejected =
      error?.status === 400 && error.message.includes(`'${param}'`) && (!tellsParam || error.param === param);
    return isRejected ? [] : [{ expected: `a refusal of ${param}`, error }];
  }
  const missing = loss?.fate.missing ?? [];
  const checks = await scenario.checks(answer, scene, ask);
  const named = loss?.fate.told?.[client.protocol];
  const expected = named === undefined ? [] : [named];
  const told = matrix.leftOut();
  if (!isDeepStrictEqual(told, expected)) return [{ expected, told }];
  const names = new Set(checks.map(({ name }) => name));
  if (loss !== null && missing.every((name) => names.has(name))) shown.add(played);
  return checks
    .filter(({ name, holds }) => holds === missing.includes(name))
    .map(({ name, holds, found }) => ({ [holds ? 'not lost' : 'does not hold']: name, found, error }));
}

/** Plays scenarios, streamed and not, with every client on every model. */
async function playAll(
  t: Test,
  matrix: Scene['matrix'],
  models: readonly MatrixModel[],
  played: readonly Scenario[],
): Promise<void> {
  for (const model of models) {
    for (const client of clients) {
      await t.test(`${client.protocol} ${model.name}`, async (t) => {
        for (const scenario of played) {
          if (scenario.clients?.includes(client.protocol) === false) continue;
          for (const stream of [false, true]) {
            const wrong = await play(scenario, { matrix, client, model, stream }).catch((error) => [error]);
            // One assertion each: a test each, with an assertion for each check, took longer than the call.
            t.strictSame(wrong, [], `${scenario.name}, ${stream ? 'streamed' : 'whole'}`);
          }
        }
      });
    }
  }
}

test('every client on every upstream', async (t) => {
  await playAll(t, await startMatrix(t), models, scenarios);
});

test('every loss in the table is a real one', async (t) => {
  for (const { clients, wires, scenarios } of losses) {
    for (const client of clients) {
      for (const wire of wires) {
        for (const scenario of scenarios) {
          const name = cell(client, wire, scenario);
          t.ok(shown.has(name), name);
        }
      }
    }
  }
});
