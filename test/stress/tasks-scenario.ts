import { held, type Line, ms, told } from './report.js';
import type { Scenario } from './scenario.js';
import { type TaskCrashPlan, taskCrash } from './tasks.js';

const tasks = 200;
const rounds = 3;

/** Tasks in flight over several kills: what a kill interrupts is a matter of chance. */
export const tasksScenario: Scenario = {
  name: 'tasks',
  mostSeconds: 240,
  async run() {
    const lines: Line[] = [];
    for (let round = 0; round < rounds; round += 1) {
      for (const killed of ['all', 'worker'] as const) lines.push(...(await crashLines(killed)));
    }
    return lines;
  },
};

async function crashLines(killed: TaskCrashPlan['killed']): Promise<readonly Line[]> {
  const figures = await taskCrash({ tasks, atOnce: 32, killed });
  const { answered, cut, cutUpstream, madeByRetry, toldInVain, lost, doubled, untold, made } = figures;
  const none = (what: string, found: readonly string[]): Line =>
    held(what, found.length === 0 ? 0 : `${found.length}: ${found[0]}`, '0', found.length === 0);
  return [
    told('killed', killed === 'all' ? 'every process, then a start on the same store' : 'one of two workers'),
    held('tasks answered', answered, `>= ${tasks}`, answered >= tasks),
    none('lost', lost),
    told('creates cut', `${cut}, of which the upstream knew ${cutUpstream}`),
    told('recorded, unanswered', figures.recordedUnanswered),
    told('interrupted, as their retries tell', figures.interrupted),
    none('of them not in the log', untold),
    held('others in the log', toldInVain, `<= ${madeByRetry} made by a retry`, toldInVain <= madeByRetry),
    none('made twice', doubled),
    held(
      'made upstream',
      made,
      `${answered} + ${cutUpstream} + ${madeByRetry}`,
      made === answered + cutUpstream + madeByRetry && made === figures.heard,
    ),
    told('all completed after', ms(figures.completedMs)),
  ];
}
