import { type Test, test } from 'tap';
import { losses, lossOf } from '../suites/translation/losses.js';
import type { MatrixModel, Scenario, Scene } from '../suites/translation/scenario.js';
import { scenarios } from '../suites/translation/scenarios.js';
import { clients, models, startMatrix } from '../suites/translation/session.js';

/** The cells of the table of losses in which a scenario has shown them. */
const shown = new Set<string>();
const cell = (...names: readonly string[]): string => names.join(' / ');

async function play(t: Test, scenario: Scenario, scene: Scene): Promise<void> {
  const { matrix, client, model } = scene;
  const wire = model.wire(client.protocol);
  const loss = lossOf(client.protocol, wire, scenario.name);
  const played = cell(client.protocol, wire, scenario.name);
  const ask = scenario.ask(scene);
  const answer = await matrix.send(client, model.name, ask);
  if (loss?.fate.kind === 'reject') {
    const param = loss.fate.param[client.protocol] ?? '?';
    t.match(answer.error, { status: 400 });
    t.match(answer.error?.message, `'${param}'`);
    if (client.protocol === 'chat' || client.protocol === 'responses') t.equal(answer.error?.param, param);
    shown.add(played);
    return;
  }
  const missing = loss?.fate.missing ?? [];
  const checks = await scenario.checks(answer, scene, ask);
  for (const { name, holds, found } of checks) {
    if (!missing.includes(name)) t.ok(holds, name, { found, error: answer.error });
    else t.notOk(holds, `${name} is lost`, { found });
  }
  const names = new Set(checks.map(({ name }) => name));
  if (loss !== null && missing.every((name) => names.has(name))) shown.add(played);
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
            await t.test(`${scenario.name}, ${stream ? 'streamed' : 'whole'}`, (t) =>
              play(t, scenario, { matrix, client, model, stream }),
            );
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
