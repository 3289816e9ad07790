import { join } from 'node:path';
import { type Test, t } from 'tap';
import { type StrictStage, startStrictStage } from '../support/strict-upstream/stage.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { textProtocols } from '../support/translated.js';
import { type Agent, type AgentEnd, agentModels, agents, otherProviders, runAgent } from './agent.js';
import { install } from './install.js';

const isQuick = process.argv.includes('--quick');
/** Parts of agents' names, each as `--agent=PART`: only agents whose names have all of them are run. */
const parts = process.argv.flatMap((arg) =>
  arg.startsWith('--agent=') ? [arg.slice('--agent='.length)] : [],
);
const modules = await install('agents');

const oneCall = 'The tools said: lighthouse-42.';
const twoCalls = 'The tools said: lighthouse-42, lighthouse-42.';
const threeCalls = 'The tools said: lighthouse-42, lighthouse-42, lighthouse-42.';

/**
 * Cells in their order, with what an agent prints at the end of each, which is said again in a turn that goes on where
 * that is played. The command that the model has it run prints the word.
 */
const cells: readonly (readonly [name: string, expected: string, isSaidAgain: boolean])[] = isQuick
  ? [
      ['text', 'The answer to text.', false],
      ['tool', oneCall, true],
    ]
  : [
      ['text', 'The answer to text.', true],
      ['tool', oneCall, true],
      ['tools', twoCalls, true],
      ['chain', threeCalls, false],
      ['thinking', twoCalls, true],
      ['image', '1 image seen.', true],
    ];

type Play = (cell: string, isFirst: boolean) => Promise<AgentEnd>;

async function playCells(t: Test, play: Play): Promise<void> {
  for (const [cell, expected, isSaidAgain] of cells) {
    const end = await play(cell, true);
    t.ok(end.code === 0 && end.output.includes(expected), cell, end);
    if (!isSaidAgain) continue;
    const next = await play('again', false);
    const isGood =
      next.code === 0 && next.output.includes('Earlier I said:') && next.output.includes(expected);
    t.ok(isGood, `again after ${cell}`, next);
  }
}

/** What an agent makes of a first answer that fails. Words that broke off are never its last ones. */
async function playFailures(t: Test, agent: Agent, play: Play, { upstream }: StrictStage): Promise<void> {
  for (const [cell, expected] of [
    ['cutonce', agent.afterCut],
    ['limitedonce', agent.afterLimit],
  ] as const) {
    const end = await play(cell, true);
    const { code, output, errors } = end;
    const isAnswered = code === 0 && output.includes(`The answer to ${cell}.`);
    const isTold = code !== 0 || /error/i.test(errors);
    const done = isAnswered ? 'asks again' : isTold ? 'tells of it' : 'takes it for the end';
    t.ok(upstream.failed.has(cell), `${cell}: the upstream failed`);
    t.equal(done, expected, cell, end);
  }
}

async function playAgent(t: Test, agent: Agent, stage: StrictStage): Promise<void> {
  const home = join(temporaryFolder(t), 'home');
  const { url, upstream } = stage;
  const play: Play = (cell, isFirst) =>
    runAgent(agent, {
      modules,
      home,
      url,
      prompt: `Please do what is to be done. cell:${cell}`,
      isFirst,
      withImage: cell === 'image',
    });
  await playCells(t, play);
  if (!isQuick) await playFailures(t, agent, play, stage);
  const broken = upstream.heard
    .map((heard) => heard.broken)
    .filter((words) => words !== null && agent.asksAgainAfter?.test(words) !== true);
  t.strictSame([...new Set(broken)], [], 'the upstream was sent nothing that it refuses');
}

t.jobs = 2;
const all = isQuick ? agents : [...agents, ...otherProviders];
for (const agent of all.filter(({ name }) => parts.every((part) => name.includes(part)))) {
  for (const wire of textProtocols)
    void t.test(`${agent.name} on ${wire}`, { buffered: true }, async (t) =>
      playAgent(t, agent, await startStrictStage(t, wire, { models: agentModels })),
    );
}
