import type { Bench, Work, WorkReport } from '../bench.js';
import { bodyFile, chatBody, prose, translatedBodies } from '../bodies.js';
import { callerAt } from '../callers.js';
import { firstWords, lastWord } from '../probe.js';
import { type Entry, runRounds, type ThroughputPlan } from '../rounds.js';
import { cpuPerUnit, throughputReport, type Unit } from '../throughput.js';
import { eventsPerAnswer } from '../upstream/answers.js';

const passedThrough = 'chat, as it comes';
/** Bytes for the rest of a body of 1 KB. */
const contentBytes = 820;

/** Calls of the other text protocols to a chat upstream, compared with the same call passed through. */
function translationWork(work: {
  readonly name: string;
  readonly title: string;
  readonly answer: ThroughputPlan['answer'];
  readonly connections: number;
  readonly unit: Unit;
  /** Only calls of responses whose turns are kept: writing them costs the process CPU time after their answers, too. */
  readonly kept?: boolean;
}): Work {
  const { name, title, answer, unit, kept = false } = work;
  const stream = answer !== 'json';
  return {
    name,
    byDefault: true,
    async run(bench: Bench): Promise<WorkReport> {
      const gateways = bench.contenders.filter(({ name }) => name === 'gateway' || name === 'against');
      const library = bench.contenders.filter(({ name }) => name === 'llms');
      if (gateways.length + library.length === 0) return missing(work);
      const plan: ThroughputPlan = {
        answer,
        engine: answer === 'sse' ? 'net' : 'uws',
        bodyFile: bodyFile(bench.directory, name, chatBody(1024, stream)),
        connections: work.connections,
      };
      const bodies = translatedBodies(prose(contentBytes), stream);
      const callers = [callerAt(0)];
      const question = (protocol: keyof typeof bodies, path: string, headers = {}) => ({
        name: `${protocol} on chat`,
        question: {
          path,
          headers,
          bodyFile: bodyFile(bench.directory, `${name}-${protocol}`, bodies[protocol]),
          holds: stream ? lastWord : firstWords,
        },
      });
      const { model } = callerAt(0);
      const questions: readonly Pick<Entry, 'name' | 'question'>[] = [
        { name: passedThrough },
        ...(kept
          ? [question('responses (kept)', '/v1/responses')]
          : [
              question('messages', '/v1/messages', { 'anthropic-version': '2023-06-01' }),
              question('responses', '/v1/responses'),
              question(
                'generateContent',
                `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
              ),
            ]),
      ];
      const entries = gateways.flatMap((contender) =>
        questions.map((asked): Entry => {
          const other = `${asked.name}, against`;
          if (contender.name === 'against') return { ...asked, contender, callers, name: other };
          return { ...asked, contender, callers, pairedWith: other };
        }),
      );
      for (const contender of library)
        entries.push(
          ...questions
            .slice(0, 2)
            .map((asked) => ({ ...asked, contender, callers, name: `${asked.name}, llms` })),
        );
      const all = await runRounds(bench, plan, entries);
      const report = throughputReport(bench, { work: name, title, unit, reference: passedThrough }, all);
      const [base = 0, ...others] = all.map((series) => cpuPerUnit(series, unit));
      const ratios = all.slice(1).flatMap((series, index) => {
        const cost = others[index] ?? 0;
        return cost > 0 ? [`${series.name} ${(base / cost).toFixed(2)}x`] : [];
      });
      return {
        ...report,
        notes: [`By CPU time, of the rate passed through: ${ratios.join(', ')}.`, ...report.notes],
      };
    },
  };
}

function missing({ name, title }: { readonly name: string; readonly title: string }): WorkReport {
  const notes = ['The gateway is not among the contenders.'];
  return { work: name, title, columns: [], rows: [], notes, figures: null };
}

/** Reports what a translation costs. */
export const translationWorks: readonly Work[] = [
  translationWork({
    name: 'translate',
    title: '1 KB conversation, 1 KB answer, 32 connections, translated and not',
    answer: 'json',
    connections: 32,
    unit: { name: 'req/s', perRequest: 1 },
  }),
  translationWork({
    name: 'translate-kept',
    title: '1 KB conversation, 1 KB answer, 32 connections, translated with its turn kept',
    answer: 'json',
    connections: 32,
    unit: { name: 'req/s', perRequest: 1 },
    kept: true,
  }),
  translationWork({
    name: 'translate-sse',
    title: 'answers of 200 events that the upstream sends in one write, 16 connections, translated and not',
    answer: 'sse',
    connections: 16,
    unit: { name: 'events/s', perRequest: eventsPerAnswer },
  }),
  translationWork({
    name: 'translate-drip',
    title: 'answers of 200 events that the upstream sends one by one, 16 connections, translated and not',
    answer: 'drip',
    connections: 16,
    unit: { name: 'events/s', perRequest: eventsPerAnswer },
  }),
];
