import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { seenWithin } from '../eventually.js';

/** A request that its client, here the gateway, gave up before the answer was complete. */
export interface Cancelled {
  readonly name: string;
  /** By `clock`. */
  readonly at: number;
}

interface UpstreamState {
  /** Requests whose answer is not complete, and whose connection still stands. */
  readonly open: number;
  /** Of them, those that have a name. */
  readonly openNamed: number;
  readonly requests: number;
  readonly cancelled: readonly Cancelled[];
}

/** How an upstream does: it follows its orders, it answers everything with status 500, or it answers nothing. */
export type Mood = 'well' | 'failing' | 'silent';

/** What the upstream's process is told: it answers `state` alone. */
export type UpstreamOrder = 'state' | Mood;

/** What the upstream's process says: its port once, then its state whenever it is asked. */
export type UpstreamReport =
  | { readonly type: 'listening'; readonly port: number }
  | { readonly type: 'state'; readonly state: UpstreamState };

/** An upstream in a process of its own, whose answers are ordered by `loadRequest`. */
export interface LoadUpstream {
  /** For `baseUrl`. */
  readonly url: string;
  readonly port: number;
  state(): Promise<UpstreamState>;
  /** From now on it does so; what it has been asked before is not touched. */
  become(mood: Mood): void;
  /** Asks for the state until it fits. Gives up, with the last one, after `withinMs`. */
  stateWhen(fits: (state: UpstreamState) => boolean, withinMs: number): Promise<UpstreamState>;
  stop(): void;
}

const askAgainMs = 10;

/** Milliseconds of a clock that all processes of a machine share. */
export function clock(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/**
 * Starts the upstream; it ends with `stop`, which kills it, and with this process.
 * @param port any free one unless given; one that is taken is waited for
 */
export async function startLoadUpstream(port = 0): Promise<LoadUpstream> {
  const child = fork(fileURLToPath(new URL('./upstream-process.js', import.meta.url)), [`${port}`], {
    execArgv: [],
  });
  const order = (message: UpstreamOrder): void => void child.send(message);
  const [first] = (await once(child, 'message')) as [UpstreamReport];
  if (first.type !== 'listening') throw new Error('the upstream did not listen');
  const state = async (): Promise<UpstreamState> => {
    const answer = once(child, 'message') as Promise<[UpstreamReport]>;
    order('state');
    const [report] = await answer;
    if (report.type !== 'state') throw new Error('the upstream did not tell its state');
    return report.state;
  };
  return {
    url: `http://127.0.0.1:${first.port}/v1`,
    port: first.port,
    state,
    become: order,
    stateWhen: (fits, withinMs) => seenWithin(state, { fits, withinMs, everyMs: askAgainMs }),
    stop: () => void child.kill('SIGKILL'),
  };
}
