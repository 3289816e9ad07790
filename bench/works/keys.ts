import type { Work } from '../bench.js';
import { bodyFile, chatBody } from '../bodies.js';
import { callerAt } from '../callers.js';
import { type Entry, runRounds, type ThroughputPlan } from '../rounds.js';
import { cpuPerUnit, throughputReport, type Unit } from '../throughput.js';

const large = { keys: 100_000, models: 5_000 };
const callers = 1_000;
const small = '1 key, 1 model';
const unit: Unit = { name: 'req/s', perRequest: 1 };

/**
 * What a large catalogue costs: the 1 KB chat with 100,000 keys and 5,000 models in the config against 1 of each.
 * A thousand callers, spread over the large catalogue, take turns; the load client prepares as many requests for the
 * small one.
 */
export const keysWork: Work = {
  name: 'keys',
  byDefault: true,
  async run(bench) {
    const body = bodyFile(bench.directory, 'keys', chatBody(1024, false));
    const plan: ThroughputPlan = { answer: 'json', engine: 'uws', bodyFile: body, connections: 32 };
    const gateway = bench.contenders.find((contender) => contender.name === 'gateway');
    if (!gateway) return missing;
    const turn = Array.from({ length: callers }, (_, index) => index);
    const entries: readonly Entry[] = [
      { name: small, contender: gateway, callers: turn.map(() => callerAt(0)) },
      {
        name: '100,000 keys, 5,000 models',
        contender: gateway,
        catalogue: large,
        callers: turn.map((index) => ({
          key: callerAt(index * (large.keys / callers)).key,
          model: callerAt(index * (large.models / callers)).model,
        })),
      },
    ];
    const all = await runRounds(bench, plan, entries);
    const head = {
      work: 'keys',
      title: '1 KB chat, 32 connections, small and large catalogue',
      unit,
      reference: small,
    };
    const report = throughputReport(bench, head, all);
    const [smallCost = 0, bigCost = 0] = all.map((series) => cpuPerUnit(series, unit));
    if (smallCost === 0 || bigCost === 0) return report;
    const ratio = `A request costs ${(bigCost / smallCost).toFixed(2)}x the CPU time with the large catalogue.`;
    return { ...report, notes: [ratio, ...report.notes] };
  },
};

const missing = {
  work: 'keys',
  title: 'small and large catalogue',
  columns: [],
  rows: [],
  notes: ['The gateway is not among the contenders.'],
  figures: null,
};
