import { schemaExample } from '../../../src/simulator/answer/schema-example.js';
import type { Asked } from './asked.js';
import type { Memory } from './memory.js';
import type { Reply, ReplyCall } from './reply.js';

/** The cases that clients go through. A user selects one by the word `cell:NAME` in a text. */
const cells = [
  'text',
  'stream',
  'tool',
  'tools',
  'chain',
  'thinking',
  'image',
  'cut',
  'limited',
  // The first answer to a request with tools fails in that way; the next one succeeds.
  'cutonce',
  'limitedonce',
  'again',
] as const;
type CellName = (typeof cells)[number];

/** Number of rounds of calls in a cell, and of calls in each. */
const rounds: Partial<Record<CellName, readonly [rounds: number, calls: number]>> = {
  tool: [1, 1],
  tools: [1, 2],
  chain: [3, 1],
  thinking: [2, 1],
};

const cities = ['Rome', 'Oslo', 'Lima'];
/**
 * Its output is not in the command, so only a client that has run it knows the output. Some agents refuse shell
 * substitutions.
 */
const command = "printf 'light%s-%d' house 42";

/** Arguments of the tools with which agents run a shell, by name. */
const shells: Readonly<Record<string, object | string>> = {
  exec: `const result = await tools.exec_command({ cmd: ${JSON.stringify(command)} }); text(result);`,
  exec_command: { cmd: command },
  Bash: { command, description: 'Print a word' },
  bash: { command, description: 'Print a word' },
  run_terminal_command: { command, description: 'Print a word' },
  run_shell_command: { command, description: 'Print a word' },
  shell: { commands: [command] },
  apply_patch: { type: 'create_file', path: 'lighthouse', diff: '+42' },
};

/** Returns a scripted model's answer to a request, by the last user text and the progress since then. */
export function replyTo(asked: Asked, memory: Memory): Reply {
  if (asked.schema !== undefined) return { text: JSON.stringify(fitting(asked.schema)) };
  const from = asked.turns.findLastIndex(
    ({ role, texts }) => role === 'user' && texts.some((text) => text.includes('cell:')),
  );
  const texts = asked.turns[from]?.texts ?? [];
  const cell = /cell:([a-z]+)/.exec(texts.findLast((text) => text.includes('cell:')) ?? '')?.[1] as CellName;
  const since = asked.turns.slice(from + 1);
  const done = since.filter(({ calls }) => calls.length > 0).length;
  const results = since.flatMap((turn) => turn.results);
  const [total, each] = rounds[cell] ?? [0, 0];
  const reasoning = { reasoning: `I think about ${cell}, step ${done + 1}.` };
  if (done < total && asked.tools.length > 0) {
    const calls = cities.slice(done, done + each).map((city) => callOf(asked, city));
    if (calls.every((call) => call !== null)) return { ...reasoning, text: 'Let me see.', calls };
  }
  const forced = done === 0 ? forcedCall(asked) : null;
  if (forced !== null) return { calls: [forced] };
  const found = results.join(' ');
  const failsOnce = asked.tools.length > 0 && cell?.endsWith('once') && !memory.failed.has(cell);
  if (failsOnce === true) memory.failed.add(cell);
  if (cell === 'cut' || (failsOnce && cell === 'cutonce'))
    return { text: 'This answer breaks off before it has ended.', isCut: true };
  if (cell === 'limited' || (failsOnce && cell === 'limitedonce')) return { isLimited: true };
  if (cell === 'image') return { ...reasoning, text: `${asked.turns[from]?.images ?? 0} image seen.` };
  if (cell === 'again') {
    const earlier = asked.turns
      .slice(0, from)
      .flatMap((turn) => (turn.role === 'model' ? turn.texts.join('') : []));
    return { ...reasoning, text: `Earlier I said: ${earlier.join(' ') || 'nothing'}` };
  }
  const seen = [...found.matchAll(/sunny in \w+|lighthouse-\d+/g)].map(([word]) => word);
  return {
    ...reasoning,
    text: total === 0 ? `The answer to ${cell}.` : `The tools said: ${seen.join(', ')}.`,
  };
}

/** Returns a value for a schema, whose type names are in capitals in generateContent. */
function fitting(schema: unknown): unknown {
  const lower = (name: string, value: unknown) =>
    name === 'type' && typeof value === 'string' ? value.toLowerCase() : value;
  const plain: unknown = JSON.parse(JSON.stringify(schema), lower);
  return schemaExample(plain, { text: () => 'word', numbers: [] });
}

function callOf({ tools }: Asked, city: string): ReplyCall | null {
  // Agents with a shell may have a tool of the same name with other arguments.
  const shellsFirst = tools.toSorted((one, other) => Number(isPatch(one)) - Number(isPatch(other)));
  for (const { name, custom, namespace } of shellsFirst) {
    if (name === 'get_weather') return { name, namespace, args: { city } };
    const args = shells[name];
    if (args === undefined) continue;
    return { name, namespace, args: typeof args === 'string' && !custom ? { input: args } : args };
  }
  return null;
}

/** The call of a tool that must be called, with arguments that fit its schema: how some clients get an answer of a form. */
function forcedCall({ tools, forced }: Asked): ReplyCall | null {
  const tool = tools.find(({ name, custom }) => !custom && (forced === true || forced === name));
  return tool === undefined
    ? null
    : { name: tool.name, namespace: tool.namespace, args: Object(fitting(tool.schema ?? {})) };
}

function isPatch({ name }: Asked['tools'][number]): boolean {
  return name === 'apply_patch';
}
