import type { Bench, Work } from '../bench.js';
import { bodyFile, chatBody } from '../bodies.js';
import { callerAt } from '../callers.js';
import type { Wiring } from '../contenders/contender.js';
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
  readonly headers?: ThroughputPlan['headers'];
  readonly wiring?: Wiring;
  readonly warmUpSeconds?: ThroughputPlan['warmUpSeconds'];
  /** Keys and models in the config, which take turns; default 1. */
  readonly models?: number;
  /** False for a work that runs only if it is named. */
  readonly byDefault?: boolean;
}

function chatWork(work: ChatWork): Work {
  return {
    name: work.name,
    byDefault: work.byDefault ?? true,
    async run(bench: Bench) {
      const plan: ThroughputPlan = {
        answer: work.answer,
        engine: work.engine,
        bodyFile: bodyFile(bench.directory, work.name, chatBody(work.bytes, work.unit === events)),
        headers: work.headers,
        connections: work.connections,
        warmUpSeconds: work.warmUpSeconds,
        ...work.wiring,
      };
      const { models = 1 } = work;
      const { key } = callerAt(0);
      const callers = Array.from({ length: models }, (_, index) => ({ key, model: callerAt(index).model }));
      // The upstream itself does not offer TLS to clients here.
      const entries = bench.contenders
        .filter(({ name }) => !work.wiring?.clientTls || name !== 'direct')
        .map((contender) => ({
          name: contender.name,
          contender,
          catalogue: { keys: 1, models },
          callers,
          pairedWith: contender.name === 'gateway' ? 'against' : undefined,
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

/** Headers that OpenAI's SDK sends on Node in addition to the key and the type, with those of an agent: 20 in all. */
const sdkHeaders = {
  accept: 'application/json',
  'accept-language': '*',
  'accept-encoding': 'gzip',
  'sec-fetch-mode': 'cors',
  'user-agent': 'OpenAI/JS 6.9.1',
  'x-stainless-retry-count': '0',
  'x-stainless-timeout': '600',
  'x-stainless-lang': 'js',
  'x-stainless-package-version': '6.9.1',
  'x-stainless-os': 'Linux',
  'x-stainless-arch': 'x64',
  'x-stainless-runtime': 'node',
  'x-stainless-runtime-version': 'v22.21.0',
  'x-client-request-id': '0f1b7c1e-7d0e-4a53-9c2e-3f1d8a6b5c4d',
  session_id: '0199c3f4-6f0a-7c41-b0d5-2b9e7a1c8d3e',
  originator: 'codex_cli_rs',
  version: '0.99.0',
  traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
};

const small = { bytes: 1024, connections: 32, answer: 'json', engine: 'uws', unit: requests } as const;
/**
 * For an upstream that takes 20 ms for an answer: enough to keep a gateway busy. V8 has compiled the path of a call
 * after some 30,000 calls, and here at most 6,400 are made in a second.
 */
const late = { ...small, answer: 'late', connections: 128, warmUpSeconds: 8 } as const;

/** The 1 KB chat as in practice: with a TLS upstream and a log. */
const wiredWorks: readonly Work[] = [
  chatWork({
    ...small,
    name: '1kb-tls',
    title: '1 KB chat body, 1 KB answer, 32 connections, over TLS to the upstream',
    wiring: { upstreamTls: true },
    byDefault: false,
  }),
  chatWork({
    ...late,
    name: '1kb-tls-20ms',
    title: '1 KB chat body, 1 KB answer after 20 ms, 128 connections, over TLS to the upstream',
    wiring: { upstreamTls: true },
    byDefault: false,
  }),
  chatWork({
    ...small,
    name: '1kb-client-tls',
    title: '1 KB chat body, 1 KB answer, 32 connections, over TLS from the client',
    wiring: { clientTls: true },
    byDefault: false,
  }),
  chatWork({
    ...small,
    name: '1kb-log',
    title: '1 KB chat body, 1 KB answer, 32 connections, with a log of every request',
    wiring: { accessLog: true },
    byDefault: false,
  }),
  chatWork({
    ...small,
    name: '1kb-all',
    title:
      '1 KB chat body, 1 KB answer, 32 connections, with headers of SDKs, a log, and TLS to the upstream',
    headers: sdkHeaders,
    wiring: { upstreamTls: true, accessLog: true },
  }),
  chatWork({
    ...late,
    name: '1kb-all-20ms',
    title:
      '1 KB chat body, 1 KB answer after 20 ms, 128 connections, with headers of SDKs, a log, and TLS to the upstream',
    headers: sdkHeaders,
    wiring: { upstreamTls: true, accessLog: true },
  }),
];

/** The works that make chat calls as fast as they are answered. */
export const chatWorks: readonly Work[] = [
  chatWork({
    ...small,
    name: '1kb',
    title: '1 KB chat body, 1 KB answer, 32 connections',
  }),
  chatWork({
    ...small,
    name: '1kb-sdk',
    title: '1 KB chat body, 1 KB answer, 32 connections, with 20 headers as SDKs send them',
    headers: sdkHeaders,
  }),
  ...wiredWorks,
  chatWork({
    ...small,
    name: '1kb-connections',
    title: '1 KB chat body, 1 KB answer, 32 connections, each closed after one call',
    headers: { connection: 'close' },
    byDefault: false,
  }),
  chatWork({
    ...small,
    name: '1kb-models',
    title: '1 KB chat body, 1 KB answer, 32 connections, 300 models in turn',
    models: 300,
    byDefault: false,
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
