import type { Bench, Work } from '../bench.js';
import { bodyFile, chatBody } from '../bodies.js';
import { callerAt } from '../callers.js';
import { runRounds, type ThroughputPlan } from '../rounds.js';
import { throughputReport, type Unit } from '../throughput.js';
import { eventsPerAnswer } from '../upstream/answers.js';

const requests: Unit = { name: 'req/s', perRequest: 1 };
const events: Unit = { name: 'events/s', perRequest: eventsPerAnswer };

interface ChatWork {
  readonly name: string;
  readonly title: string;
  readonly bytes: number;
  readonly connections: number;
  readonly answer: ThroughputPlan['answer'];
  readonly engine: ThroughputPlan['engine'];
  readonly unit: Unit;
}

function chatWork(work: ChatWork): Work {
  return {
    name: work.name,
    byDefault: true,
    async run(bench: Bench) {
      const plan: ThroughputPlan = {
        answer: work.answer,
        engine: work.engine,
        bodyFile: bodyFile(bench.directory, work.name, chatBody(work.bytes, work.unit === events)),
        connections: work.connections,
      };
      const entries = bench.contenders.map((contender) => ({
        name: contender.name,
        contender,
        callers: [callerAt(0)],
      }));
      const all = await runRounds(bench, plan, entries);
      return throughputReport(
        bench,
        { work: work.name, title: work.title, unit: work.unit, reference: 'nginx' },
        all,
      );
    },
  };
}

/** The works that ask for chat completions as fast as they are answered. */
export const chatWorks: readonly Work[] = [
  chatWork({
    name: '1kb',
    title: '1 KB chat body, 1 KB answer, 32 connections',
    bytes: 1024,
    connections: 32,
    answer: 'json',
    engine: 'uws',
    unit: requests,
  }),
  chatWork({
    name: '300kb',
    title: '318 KB prompt in a two-message chat, 1 KB answer, 16 connections',
    bytes: 318_000,
    connections: 16,
    answer: 'json',
    engine: 'uws',
    unit: requests,
  }),
  chatWork({
    name: 'sse',
    title: 'answers of 200 events that the upstream sends in one write, 16 connections',
    bytes: 1024,
    connections: 16,
    answer: 'sse',
    engine: 'net',
    unit: events,
  }),
  chatWork({
    name: 'drip',
    title: 'answers of 200 events that the upstream sends one by one, 16 connections',
    bytes: 1024,
    connections: 16,
    answer: 'drip',
    engine: 'uws',
    unit: events,
  }),
];
