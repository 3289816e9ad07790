import { join } from 'node:path';
import { type Test, t } from 'tap';
import { type StrictStage, startStrictStage } from '../support/strict-upstream/stage.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { textProtocols } from '../support/translated.js';
import { type Agent, agentModels, agents, otherProviders, runAgent } from './agent.js';
import { install } from './install.js';

const isQuick = process.argv.includes('--quick');
const modules = await install('agents');

/** What an agent prints at the end of a turn. The command that the model has it run prints the word in the second. */
const turns = [
  ['text', true, 'The answer to text.'],
  ['tool', true, 'The tools said: lighthouse-42.'],
  ['again', false, 'Earlier I said:'],
] as const;

async function playAgent(t: Test, agent: Agent, { url, upstream }: StrictStage): Promise<void> {
  const home = join(temporaryFolder(t), 'home');
  for (const [cell, isFirst, expected] of turns) {
    const prompt = `Please do what is to be done. cell:${cell}`;
    const { code, output, errors } = await runAgent(agent, { modules, home, url, prompt, isFirst });
    const isGood = code === 0 && output.includes(expected);
    t.ok(isGood && (isFirst || output.includes('lighthouse-42')), cell, { code, output, errors });
  }
  const broken = upstream.heard.map((heard) => heard.broken).filter((words) => words !== null);
  t.strictSame([...new Set(broken)], [], 'the upstream was sent nothing that it refuses');
}

t.jobs = 2;
for (const agent of isQuick ? agents : [...agents, ...otherProviders]) {
  for (const wire of textProtocols)
    void t.test(`${agent.name} on ${wire}`, { buffered: true }, async (t) =>
      playAgent(t, agent, await startStrictStage(t, wire, { models: agentModels })),
    );
}
