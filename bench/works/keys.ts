import type { Work } from '../bench.js';
import { bodyFile, chatBody } from '../bodies.js';
import { callerAt } from '../callers.js';
import { gateway, unreachedLimits } from '../contenders/gateway.js';
import { median } from '../figures.js';
import { type Entry, runRounds, type ThroughputPlan } from '../rounds.js';
import { cpuPerUnit, throughputReport, type Unit } from '../throughput.js';

export const large = { keys: 100_000, models: 5_000 };
const small = '1 key, 1 model';
const unit: Unit = { name: 'req/s', perRequest: 1 };

/** Limits of each of many keys, far above what it uses here. */
export const ordinaryLimits = { requestsPerMinute: 6000, tokensPerMinute: 2_000_000, concurrent: 50 };

/**
 * Measures a large catalogue: the 1 KB chat with 100,000 keys and 5,000 models that take turns, so that a key's data
 * is not in the processor's caches at its next call, compared with 1 of each; with limits and without.
 */
export const keysWork: Work = {
  name: 'keys',
  byDefault: true,
  async run(bench) {
    const body = bodyFile(bench.directory, 'keys', chatBody(1024, false));
    const plan: ThroughputPlan = { answer: 'json', engine: 'uws', bodyFile: body, connections: 32 };
    const [plain, one, each] = [undefined, unreachedLimits, ordinaryLimits].map((limits) =>
      gateway({ name: 'gateway', main: bench.main, logs: false, limits }),
    ) as [Entry['contender'], Entry['contender'], Entry['contender']];
    const callers = Array.from({ length: large.keys }, (_, index) => ({
      key: callerAt(index).key,
      model: callerAt(index % large.models).model,
    }));
    const alone = [callerAt(0)];
    const many = `${large.keys} keys, ${large.models} models`;
    const entries: readonly Entry[] = [
      { name: small, contender: plain, callers: alone },
      { name: many, contender: plain, catalogue: large, callers },
      { name: `${small}, limits`, contender: one, callers: alone },
      { name: `${many}, limits`, contender: each, catalogue: large, callers },
    ];
    const all = await runRounds(bench, plan, entries);
    const head = {
      work: 'keys',
      title: '1 KB chat, 32 connections, small and large catalogue',
      unit,
      reference: small,
    };
    const report = throughputReport(bench, head, all);
    const costs = all.map((series) => cpuPerUnit(series, unit));
    const slowest = all.map(({ samples }) => median(samples.map(({ p99Us }) => p99Us)));
    const notes = [0, 2].flatMap((index) => {
      const [smallCost = 0, largeCost = 0] = costs.slice(index, index + 2);
      const [smallP99 = 0, largeP99 = 0] = slowest.slice(index, index + 2);
      if (smallCost === 0 || largeCost === 0) return [];
      const [cost, p99] = [largeCost / smallCost, largeP99 / smallP99].map((ratio) => `${ratio.toFixed(2)}x`);
      return [
        `${entries[index + 1]?.name}: ${cost} the CPU time and ${p99} the p99 of ${entries[index]?.name}.`,
      ];
    });
    return { ...report, notes: [...notes, ...report.notes] };
  },
};
