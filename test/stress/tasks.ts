import { setTimeout as pause } from 'node:timers/promises';
import { type Simulator, type SimulatorOptions, startSimulator } from '../../src/simulator/server.js';
import { seenWithin } from '../support/eventually.js';
import { startGateway, untilKilled } from '../support/gateway.js';
import { type GatewayProcesses, parseEntry } from '../support/gateway-processes.js';
import { random } from '../support/seed.js';
import { askTask, type TaskAnswer, taskClientFormats, untilEnded } from '../support/tasks/client.js';
import { tasksGateway } from '../support/tasks/gateway.js';
import { storeFolder } from './store-folder.js';

export interface TaskCrashPlan {
  /** Tasks in flight when the processes are killed. */
  readonly tasks: number;
  /** Approximate number of tasks that are being created at that time. */
  readonly atOnce: number;
  /** Kill all processes and restart on the same store, or kill one of two workers. */
  readonly killed: 'all' | 'worker';
}

export interface TaskCrashFigures {
  /** Answered creations, and interrupted ones. */
  readonly answered: number;
  readonly cut: number;
  /** Interrupted creations that reached the upstream, and those of them whose task was recorded nevertheless. */
  readonly cutUpstream: number;
  readonly recordedUnanswered: number;
  /** Interrupted creations whose retry created the task, since they had reached no upstream. */
  readonly madeByRetry: number;
  /** Interrupted creations whose retry reported the interruption. */
  readonly interrupted: number;
  /** Those of them that the log does not name. */
  readonly untold: readonly string[];
  /** Others that the log names: recorded, and interrupted before their key was. They never reached the upstream. */
  readonly toldInVain: number;
  /** Tasks whose creation was answered and that did not complete, with the answers about each. */
  readonly lost: readonly string[];
  /** Prompts that reached the upstream more than once. */
  readonly doubled: readonly string[];
  /** Tasks that the upstream created, and prompts that it received. */
  readonly made: number;
  readonly heard: number;
  /** From the start of the new gateway, or the kill of the worker, until all tasks had completed. */
  readonly completedMs: number;
}

interface Create {
  readonly prompt: string;
  readonly idempotencyKey: string;
  /** Null if no answer arrived. */
  id: string | null;
}

const pace = { queuedMs: 300, runningMs: 700 };
/** Long enough for a kill to find some creations at the upstream. */
const upstreamMs = 15;
const logged = 'a video task was being submitted when its process ended';
const pollers = 4;
/** The log may be written later than the answers. */
const toldMs = 5000;

/** Tasks in flight while processes are killed in the middle of creations and polls. */
export async function taskCrash(plan: TaskCrashPlan): Promise<TaskCrashFigures> {
  const heard = new Map<string, number>();
  const simulator = await startSimulator({
    videoPace: pace,
    latencyMs: upstreamMs,
    onRequest: countPrompts(heard),
  });
  const folder = storeFolder();
  const options = {
    upstreamUrl: simulator.url,
    store: { kind: 'embedded', path: folder.path },
    workers: plan.killed === 'all' ? 1 : 2,
  };
  let gateway = await startGateway(untilKilled, tasksGateway(options));
  try {
    const { logs } = gateway;
    const creates = await makeUntilKilled(gateway, plan);
    const heardBefore = new Set(heard.keys());
    const begunAt = performance.now();
    if (plan.killed === 'all') gateway = await startGateway(untilKilled, tasksGateway(options));
    return await take(gateway, {
      simulator,
      heard,
      heardBefore,
      creates,
      begunAt,
      logs: [logs, gateway.logs],
    });
  } finally {
    await gateway.end();
    await simulator.close();
    folder.remove();
  }
}

function countPrompts(heard: Map<string, number>): SimulatorOptions['onRequest'] {
  return ({ method, target, body }) => {
    if (method !== 'POST' || target !== '/v1/videos') return;
    const prompt = /prompt \d+;/.exec(body.toString('latin1'))?.[0] ?? '';
    heard.set(prompt, (heard.get(prompt) ?? 0) + 1);
  };
}

/** Creates tasks and polls them until there are enough, and kills. @returns every creation that was begun */
async function makeUntilKilled(gateway: GatewayProcesses, plan: TaskCrashPlan): Promise<readonly Create[]> {
  const creates: Create[] = [];
  const answered: string[] = [];
  let killed: Promise<unknown> | null = null;
  const kill = (): Promise<unknown> => {
    if (plan.killed === 'all') return gateway.end();
    const [victim] = gateway.workerPids();
    process.kill(victim ?? 0, 'SIGKILL');
    return gateway.until(
      () => gateway.workerPids().length === 2 && !gateway.workerPids().includes(victim ?? 0),
    );
  };
  const make = async (): Promise<void> => {
    while (killed === null) {
      const number = creates.length;
      const create: Create = { prompt: `prompt ${number};`, idempotencyKey: `key-${number}`, id: null };
      creates.push(create);
      const answer = await answerOf(gateway, create);
      if (answer === null) return;
      create.id = String(answer.body.id);
      answered.push(create.id);
      if (answered.length === plan.tasks) killed = kill();
    }
  };
  const poll = async (): Promise<void> => {
    while (killed === null) {
      const id = answered[Math.floor(random() * answered.length)];
      if (id === undefined) await pause(5);
      else await askTask(gateway.baseUrl, taskClientFormats.compat.show(id)).catch(() => {});
    }
  };
  await Promise.all([...Array.from({ length: plan.atOnce }, make), ...Array.from({ length: pollers }, poll)]);
  await killed;
  return creates;
}

/** @returns null if the connection broke before the answer */
async function answerOf(gateway: GatewayProcesses, create: Create): Promise<TaskAnswer | null> {
  const { idempotencyKey, prompt } = create;
  try {
    const answer = await askTask(gateway.baseUrl, taskClientFormats.compat.create(prompt), {
      idempotencyKey,
    });
    if (answer.status === 200 || answer.status === 409) return answer;
    throw new Error(`a create was answered with ${answer.status}: ${JSON.stringify(answer.body)}`);
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}

interface Aftermath {
  readonly simulator: Simulator;
  readonly heard: ReadonlyMap<string, number>;
  /** Prompts that had reached the upstream when the processes were killed. */
  readonly heardBefore: ReadonlySet<string>;
  readonly creates: readonly Create[];
  readonly begunAt: number;
  readonly logs: readonly (readonly string[])[];
}

/** Polls everything that should exist, and repeats what was interrupted. */
async function take(gateway: GatewayProcesses, aftermath: Aftermath): Promise<TaskCrashFigures> {
  const { simulator, heard, heardBefore, creates, begunAt, logs } = aftermath;
  const lost: string[] = [];
  const ids = creates.flatMap(({ id }) => id ?? []);
  await Promise.all(
    ids.map(async (id) => {
      const { status, body } = await untilEnded(gateway.baseUrl, id);
      if (status !== 200 || body.status !== 'completed')
        lost.push(`${id}: ${status} ${JSON.stringify(body)}`);
    }),
  );
  const completedMs = performance.now() - begunAt;
  const cut = creates.filter(({ id }) => id === null);
  const interrupted = new Set<string>();
  let recordedUnanswered = 0;
  for (const create of cut) {
    const { id, failed } = await retried(gateway, create);
    if (failed) interrupted.add(id);
    else if (heardBefore.has(create.prompt)) recordedUnanswered += 1;
  }
  const toldNow = (): Set<string> => new Set(logs.flat().flatMap(toldIn));
  const allTold = gateway.until(() => [...interrupted].every((id) => toldNow().has(id)));
  await Promise.race([allTold, pause(toldMs, undefined, { ref: false })]);
  const told = toldNow();
  return {
    answered: ids.length,
    cut: cut.length,
    cutUpstream: cut.filter(({ prompt }) => heardBefore.has(prompt)).length,
    recordedUnanswered,
    madeByRetry: cut.filter(({ prompt }) => !heardBefore.has(prompt) && heard.has(prompt)).length,
    interrupted: interrupted.size,
    untold: [...interrupted].filter((id) => !told.has(id)),
    toldInVain: [...told].filter((id) => !interrupted.has(id)).length,
    lost,
    doubled: [...heard].flatMap(([prompt, count]) => (count > 1 ? [`${prompt} ${count} times`] : [])),
    made: simulator.state().videosMade,
    heard: heard.size,
    completedMs,
  };
}

const retryMs = 100;

/** Repeats a creation with its key until it no longer conflicts with the first attempt. */
async function retried(gateway: GatewayProcesses, create: Create): Promise<{ id: string; failed: boolean }> {
  const fits = (answer: TaskAnswer | null): boolean => answer?.status !== 409;
  const answer = await seenWithin(() => answerOf(gateway, create), {
    fits,
    withinMs: 600_000,
    everyMs: retryMs,
  });
  if (answer === null) throw new Error('a retry was cut, too');
  const { id, status, error } = answer.body as {
    id: string;
    status: string;
    error: { code: string } | null;
  };
  if (status === 'failed' && error?.code !== 'submission_interrupted')
    throw new Error(`a retry tells ${JSON.stringify(answer.body)}`);
  return { id, failed: status === 'failed' };
}

/** Returns the task that a log line reports as interrupted. */
function toldIn(line: string): string[] {
  const entry = parseEntry(line);
  return String(entry?.msg).startsWith(logged) ? [String(entry?.task)] : [];
}
