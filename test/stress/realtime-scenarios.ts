import { crowd, cutSessions, deafClient } from './realtime.js';
import { held, type Line, mb, told } from './report.js';
import type { Scenario } from './scenario.js';

const sessions = 1000;
/** Long enough for a garbage collection: until then memory only grows. */
const rounds = 20;
/** Time after which the heap has its usual size. */
const warmRound = 2;
const lastRounds = 6;
const mostGrowthMb = 32;
const floodMb = 1000;

/** Realtime sessions: cut, not read, and many of them. */
export const realtimeScenarios: readonly Scenario[] = [
  {
    name: 'realtime-cuts',
    mostSeconds: 180,
    async run() {
      const figures = await cutSessions({ sessions, rounds, perSecond: 500, withinMs: 10_000 });
      const [before = 0, ...after] = figures.sockets;
      const growth =
        Math.min(...figures.residentMb.slice(-lastRounds)) - (figures.residentMb[warmRound] ?? 0);
      const half = (rounds * sessions) / 2;
      const codes = Object.entries(figures.codes).map(([code, count]) => `${code}: ${count}`);
      return [
        told('sessions, cut by either side', `${rounds} x ${sessions}`),
        // Those that the upstream cuts; some of the others leave before.
        held('that were open', figures.opened, `>= ${half}`, figures.opened >= half),
        told('close codes at the clients', codes.join(', ')),
        held(
          'sockets of the worker after each round',
          after.join(', '),
          `<= ${before}`,
          after.every((count) => count <= before),
        ),
        held(
          'open upstream after each round',
          figures.openUpstream.join(', '),
          '0',
          figures.openUpstream.every((open) => open === 0),
        ),
        held(
          'resident after each round',
          figures.residentMb.map(mb).join(', '),
          `lowest of the last ${lastRounds} - 3rd < 16 MB`,
          growth < 16,
        ),
      ];
    },
  },
  {
    name: 'realtime-deaf',
    mostSeconds: 120,
    async run(seconds) {
      const figures = await deafClient({ megabytes: floodMb, deafSeconds: seconds ?? 10 });
      const growth = figures.deafMb - figures.beforeMb;
      return [
        told('resident before', mb(figures.beforeMb)),
        held(
          'growth while the client does not read',
          mb(growth),
          `< ${mostGrowthMb} MB`,
          growth < mostGrowthMb,
        ),
        told('growth while it reads', mb(figures.readingMb - figures.beforeMb)),
        held(
          'read in the end',
          `${(figures.bytes / 1e6).toFixed(0)} MB`,
          `>= ${floodMb} MB`,
          figures.bytes >= floodMb * 1e6,
        ),
        held('to the end of the turn', figures.whole ? 'yes' : 'no', 'yes', figures.whole),
        told('pace', `${(figures.bytes / 1e6 / figures.readingSeconds).toFixed(0)} MB/s`),
      ];
    },
  },
  {
    name: 'realtime-crowd',
    mostSeconds: 120,
    async run(seconds): Promise<readonly Line[]> {
      const plan = { idle: 2000, busy: 200, seconds: seconds ?? 10 };
      const figures = await crowd(plan);
      const perSession = ((figures.idleMb - figures.beforeMb) * 1024) / plan.idle;
      return [
        told('resident before', mb(figures.beforeMb)),
        told(`resident with ${plan.idle} idle sessions`, mb(figures.idleMb)),
        held('memory of an idle session', `${perSession.toFixed(1)} KB`, '< 64 KB', perSession < 64),
        told(`highest with ${plan.busy} busy ones too`, mb(figures.busyMb)),
        told('turns, and events a second', `${figures.turns}, ${(figures.events / plan.seconds).toFixed(0)}`),
        told('of one core', `${(figures.load * 100).toFixed(0)} %`),
        held('sessions lost', figures.lost, '0', figures.lost === 0),
        told('resident after all have left', mb(figures.afterMb)),
        held('sockets left', figures.socketsLeft, '0', figures.socketsLeft <= 0),
      ];
    },
  },
];
