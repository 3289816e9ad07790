import { describeFailures } from '../support/load/load.js';
import { quantile } from '../support/process-memory.js';
import { bodies } from './bodies.js';
import { bookOfHostsScenario, bookScenario } from './book-scenario.js';
import { databaseScenarios } from './database-scenario.js';
import { drain } from './drain.js';
import { failoverScenarios } from './failover.js';
import { headsScenario } from './heads.js';
import { hostileScenarios } from './hostile-scenarios.js';
import { hostileSocketScenarios } from './hostile-socket-scenarios.js';
import { drainedLeavers, leavers, mostReadOn, readOnMs } from './leavers.js';
import { mediaScenarios } from './media-scenarios.js';
import { memory } from './memory.js';
import { realtimeScenarios } from './realtime-scenarios.js';
import { reload } from './reload.js';
import { held, type Line, mb, ms, told } from './report.js';
import type { Scenario } from './scenario.js';
import { type SlowReadersFigures, type SlowReadersPlan, slowReaders } from './slow-readers.js';
import { tasksScenario } from './tasks-scenario.js';
import { slowTranslations } from './translation.js';
import { workerDeath } from './worker-death.js';

const none = (what: string, failures: Parameters<typeof describeFailures>[0]): Line =>
  held(
    what,
    failures.length === 0 ? 0 : `${failures.length}: ${describeFailures(failures)}`,
    '0',
    failures.length === 0,
  );

/** Connections that are opened while the workers stop listening fail occasionally. */
const drainRounds = 6;

const slow = 64;

const slowReaderPlan = (seconds: number | null): SlowReadersPlan => ({
  readers: slow,
  bytesPerSecond: 1024,
  streamMegabytes: 100,
  seconds: seconds ?? 30,
  warmUpSeconds: 5,
  withinMs: 1000,
});

function slowReaderLines(figures: SlowReadersFigures): readonly Line[] {
  const { beforeMb, highestMb, cut, openBeforeLeaving, openAfterLeaving, cancelled } = figures;
  const growth = highestMb - beforeMb;
  return [
    told('resident after ordinary traffic', mb(beforeMb)),
    told('highest with the slow readers', mb(highestMb)),
    held('growth', mb(growth), '< 32 MB', growth < 32),
    told('read by all', `${(figures.bytesRead / 1024).toFixed(0)} KB`),
    held('readers cut', cut, '0', cut === 0),
    held('open upstream before they leave', openBeforeLeaving, `${slow}`, openBeforeLeaving === slow),
    held('open upstream 1 s after', openAfterLeaving, '0', openAfterLeaving === 0),
    held('cancelled upstream', cancelled, `${slow}`, cancelled === slow),
  ];
}

export const scenarios: readonly Scenario[] = [
  {
    name: 'slow-readers',
    mostSeconds: 90,
    run: async (seconds) => slowReaderLines(await slowReaders(slowReaderPlan(seconds))),
  },
  {
    name: 'translation',
    mostSeconds: 90,
    async run(seconds) {
      const figures = await slowTranslations(slowReaderPlan(seconds));
      const path = figures.paths.join(', ');
      return [
        held('how the streams pass', path, 'translated', path === 'translated'),
        ...slowReaderLines(figures),
      ];
    },
  },
  {
    name: 'leavers',
    mostSeconds: 150,
    async run() {
      const count = 1000;
      // Long enough for garbage collections, between which memory varies by tens of MB.
      const rounds = 20;
      const lastRounds = 6;
      // Time after which the heap has its usual size.
      const warmRound = 2;
      const plan = { leavers: count, rounds, atOnce: 10, withinMs: 1000 };
      const figures = await leavers(plan);
      const drained = await drainedLeavers(plan);
      const lowest = Math.min(...figures.residentMb.slice(-lastRounds));
      const growth = lowest - (figures.residentMb[warmRound] ?? 0);
      const p50 = quantile(figures.noticedMs, 0.5);
      return [
        told('leavers', `${rounds} x ${count}, half FIN, half RST`),
        held(
          'cancelled upstream',
          figures.noticedMs.length,
          `${count * rounds}`,
          figures.noticedMs.length === count * rounds,
        ),
        held('leaving to cancellation, p50', ms(p50), '< 50 ms', p50 < 50),
        told('leaving to cancellation, p99', ms(quantile(figures.noticedMs, 0.99))),
        told('leaving to cancellation, longest', ms(quantile(figures.noticedMs, 1))),
        held(
          'open upstream 1 s after each round',
          figures.open.join(', '),
          '0',
          figures.open.every((open) => open === 0),
        ),
        held(
          'resident after each round',
          figures.residentMb.map(mb).join(', '),
          `lowest of the last ${lastRounds} - 3rd < 16 MB`,
          growth < 16,
        ),
        held(
          'read on for, where it is by default',
          drained.readOn,
          `<= ${mostReadOn}`,
          drained.readOn <= mostReadOn,
        ),
        held(`open upstream ${readOnMs / 1000} s later`, drained.openAtEnd, '0', drained.openAtEnd === 0),
      ];
    },
  },
  {
    name: 'bodies',
    mostSeconds: 90,
    async run(seconds) {
      const connections = 1500;
      const figures = await bodies({ connections, bodyBytes: 150_000, restSeconds: seconds ?? 10 });
      return [
        held(
          'answers with 200',
          [figures.answered, ...figures.problems].join('; '),
          `${connections}`,
          figures.answered === connections,
        ),
        told('resident before', mb(figures.beforeMb)),
        held('peak resident', mb(figures.peakMb), '< 900 MB, goal 450', figures.peakMb < 900),
        told(`resident ${seconds ?? 10} s after (goal < 100 MB)`, mb(figures.afterMb)),
      ];
    },
  },
  {
    name: 'worker-death',
    mostSeconds: 60,
    async run() {
      const figures = await workerDeath({ connections: 32, seconds: 2 });
      const { failures, failuresOnVictim, failuresOnSurvivor, failuresAfterwards, onVictim } = figures;
      const ownMs = figures.restoredMs - figures.waitedMs;
      const starts = figures.restoredCpuMs / figures.bareCpuMs;
      return [
        told('answers', figures.answers),
        told('connections on the killed worker', onVictim),
        held('failed on it', failuresOnVictim, `<= ${onVictim}`, failuresOnVictim <= onVictim),
        held('failed on the other worker', failuresOnSurvivor, '0', failuresOnSurvivor === 0),
        told('failed on new connections, reset by the dying worker', figures.failuresOnNew),
        told('what all of them met', describeFailures(failures)),
        told('the last of them after', ms(figures.lastFailureMs)),
        told('the new worker answers after', ms(figures.restoredMs)),
        held('of which it did not wait for a core', ms(ownMs), '< 1000 ms', ownMs < 1000),
        told('CPU time of its start', ms(figures.restoredCpuMs)),
        held('of that of a bare Node', starts.toFixed(1), '< 8', starts < 8),
        held('failed from then on', failuresAfterwards, '0', failuresAfterwards === 0),
      ];
    },
  },
  {
    name: 'reload',
    mostSeconds: 60,
    async run() {
      const figures = await reload({ connections: 32, reloads: 16, everyMs: 300 });
      return [
        told('answers', figures.answers),
        none('failed requests', figures.failures),
        held('bad files refused', figures.refusals, '1', figures.refusals === 1),
        held(
          'models after the bad file',
          figures.modelsAfterBad.join(' | '),
          'm model-7',
          figures.modelsAfterBad.join() === 'm model-7',
        ),
        held(
          'models at the end',
          figures.modelsAtEnd.join(' | '),
          'last m',
          figures.modelsAtEnd.join() === 'last m',
        ),
      ];
    },
  },
  {
    name: 'drain',
    mostSeconds: 90,
    async run() {
      const streams = 16;
      // The more workers, the further apart they stop listening, and the more clients reconnect in between.
      const plan = { workers: 4, busy: 48, pausing: 24, streams, streamSeconds: 4, seconds: 2 };
      const figures = await drain(plan);
      const failures = [...figures.failures];
      for (let round = 1; round < drainRounds; round += 1) {
        failures.push(...(await drain({ ...plan, streamSeconds: 0.5, seconds: 0.5 })).failures);
      }
      return [
        told('answers of the first round', figures.answers),
        none(`failed requests in ${drainRounds} rounds`, failures),
        told('failed on new connections', failures.filter(({ worker }) => worker === null).length),
        held('streams that end whole', figures.streamsWhole, `${streams}`, figures.streamsWhole === streams),
        held('exit code', figures.exit.code ?? `${figures.exit.signal}`, '0', figures.exit.code === 0),
        told('from the signal to the end', ms(figures.drainedMs)),
      ];
    },
  },
  {
    name: 'memory',
    mostSeconds: 900,
    async run(seconds) {
      const figures = await memory({ seconds: seconds ?? 180 });
      const [, , middle = 0, , , last = 0] = figures.partsMb;
      return [
        told('answers', figures.answers),
        told('left in the middle of a stream', figures.left),
        none('failed requests', figures.failures),
        held(
          'median resident in each sixth',
          figures.partsMb.map((part) => part.toFixed(0)).join(' '),
          '6th - 3rd < 16 MB',
          last - middle < 16,
        ),
        held('open upstream at the end', figures.openAtEnd, '0', figures.openAtEnd === 0),
      ];
    },
  },
  headsScenario,
  ...failoverScenarios,
  tasksScenario,
  bookScenario,
  bookOfHostsScenario,
  ...databaseScenarios,
  ...mediaScenarios,
  ...realtimeScenarios,
  ...hostileScenarios,
  ...hostileSocketScenarios,
];
