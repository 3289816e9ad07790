import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '../support/eventually.js';
import { parseEntry, writeConfig } from '../support/gateway-processes.js';
import { type Answer, openConnection } from '../support/load/connection.js';
import { type LoadFailure, startLoad } from '../support/load/load.js';
import { loadRequest, modelsRequest } from '../support/load/request.js';
import { onStage, type Stage, stageConfig } from './stage.js';

interface ReloadPlan {
  readonly connections: number;
  readonly reloads: number;
  readonly everyMs: number;
}

interface ReloadFigures {
  readonly answers: number;
  readonly failures: readonly LoadFailure[];
  /** Models on every worker after a reload with an invalid file, and after the last one with a valid file. */
  readonly modelsAfterBad: readonly string[];
  readonly modelsAtEnd: readonly string[];
  readonly refusals: number;
}

const workers = 2;
const requests = [
  loadRequest({ does: 'complete' }),
  loadRequest({ does: 'stream', events: 5, everyMs: 10 }),
  loadRequest({ does: 'complete' }),
];

/** Two workers under load while the config is changed repeatedly, and is invalid once. */
export function reload(plan: ReloadPlan): Promise<ReloadFigures> {
  return onStage({ workers }, async (stage) => {
    const { gateway, upstream } = stage;
    const path = gateway.configPath ?? '';
    const load = startLoad({ port: gateway.port, connections: plan.connections, requests });
    const put = async (models: readonly string[]): Promise<void> => {
      writeConfig(path, stageConfig(upstream.url, models));
      gateway.kill('SIGHUP');
      await pause(plan.everyMs);
    };
    const half = Math.ceil(plan.reloads / 2);
    for (let count = 0; count < half; count += 1) await put(['m', `model-${count}`]);
    await modelsOnAll(stage, `m model-${half - 1}`);

    writeConfig(path, '{ "upstreams": {}, "models": ');
    gateway.kill('SIGHUP');
    await gateway.until(() => refusalsOf(stage) === 1);
    const modelsAfterBad = await modelsOnAll(stage);

    for (let count = half; count < plan.reloads; count += 1) await put(['m', `model-${count}`]);
    await put(['m', 'last']);
    const modelsAtEnd = await modelsOnAll(stage, 'last m');
    await load.stop();
    return {
      answers: load.answers,
      failures: load.failures,
      modelsAfterBad,
      modelsAtEnd,
      refusals: refusalsOf(stage),
    };
  });
}

function refusalsOf(stage: Stage): number {
  return stage.gateway.logs.filter((line) => String(parseEntry(line)?.msg).startsWith('reload refused'))
    .length;
}

/**
 * Requests the model list until every worker has answered, with `awaited` if that is given.
 * @returns the different answers: one if the workers agree
 */
async function modelsOnAll(stage: Stage, awaited?: string): Promise<string[]> {
  const modelsOf = new Map<string, string>();
  const agree = async (): Promise<boolean> => {
    const connection = await openConnection(stage.gateway.port);
    const answer = await connection.ask(modelsRequest);
    connection.close();
    modelsOf.set(answer.worker, namesIn(answer));
    return (
      modelsOf.size === workers &&
      (awaited === undefined || [...modelsOf.values()].every((models) => models === awaited))
    );
  };
  await eventually(agree, { what: `the models ${awaited ?? ''} at each of ${workers} workers` });
  return [...new Set(modelsOf.values())];
}

function namesIn(answer: Answer): string {
  const { data } = JSON.parse(answer.text) as { data: { id: string }[] };
  return data.map((model) => model.id).join(' ');
}
