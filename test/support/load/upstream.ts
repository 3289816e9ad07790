import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { seenWithin } from '../eventually.js';

/** A request that the gateway, its client, cancelled before the answer was complete. */
export interface Cancelled {
  readonly name: string;
  /** Time by `clock`. */
  readonly at: number;
}

interface UpstreamState {
  /** Requests whose answer is not complete, and whose connection is open. */
  readonly open: number;
  /** The named ones among them. */
  readonly openNamed: number;
  readonly requests: number;
  readonly cancelled: readonly Cancelled[];
}

/** How an upstream behaves: it follows its orders, answers everything with status 500, or answers nothing. */
export type Mood = 'well' | 'failing' | 'silent';

/** Messages to the upstream's process; only `state` is answered. */
export type UpstreamOrder = 'state' | Mood;

/** Messages of the upstream's process: its port once, then its state whenever it is requested. */
export type UpstreamReport =
  | { readonly type: 'listening'; readonly port: number }
  | { readonly type: 'state'; readonly state: UpstreamState };

/** An upstream in a separate process, whose answers `loadRequest` determines. */
export interface LoadUpstream {
  /** For `baseUrl`. */
  readonly url: string;
  readonly port: number;
  state(): Promise<UpstreamState>;
  /** Changes its behaviour, except for requests that it has received already. */
  become(mood: Mood): void;
  /** Requests the state until it matches. Resolves with the last one after `withinMs`. */
  stateWhen(fits: (state: UpstreamState) => boolean, withinMs: number): Promise<UpstreamState>;
  stop(): void;
}

const askAgainMs = 10;

/** Milliseconds of a clock that all processes of a machine share. */
export function clock(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/**
 * Starts the upstream. It ends with this process, or with `stop`, which kills it.
 * @param port default: any free one. Waits for a port that is in use
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
