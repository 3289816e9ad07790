import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** A request that its client, here the gateway, gave up before the answer was complete. */
export interface Cancelled {
  readonly name: string;
  /** By `clock`. */
  readonly at: number;
}

export interface UpstreamState {
  /** Requests whose answer is not complete, and whose connection still stands. */
  readonly open: number;
  /** Of them, those that have a name. */
  readonly openNamed: number;
  readonly requests: number;
  readonly cancelled: readonly Cancelled[];
}

/** What the upstream's process says: its port once, then its state whenever it is asked. */
export type UpstreamReport =
  | { readonly type: 'listening'; readonly port: number }
  | { readonly type: 'state'; readonly state: UpstreamState };

/** An upstream in a process of its own, whose answers are ordered by `loadRequest`. */
export interface LoadUpstream {
  /** For `baseUrl`. */
  readonly url: string;
  state(): Promise<UpstreamState>;
  /** Asks for the state until it fits. Gives up, with the last one, after `withinMs`. */
  stateWhen(fits: (state: UpstreamState) => boolean, withinMs: number): Promise<UpstreamState>;
  stop(): void;
}

const askAgainMs = 10;

/** Milliseconds of a clock that all processes of a machine share. */
export function clock(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Starts the upstream; it ends with `stop`, and with this process. */
export async function startLoadUpstream(): Promise<LoadUpstream> {
  const child = fork(fileURLToPath(new URL('./load-upstream-process.js', import.meta.url)), [], {
    execArgv: [],
  });
  const [first] = (await once(child, 'message')) as [UpstreamReport];
  if (first.type !== 'listening') throw new Error('the upstream did not listen');
  const state = async (): Promise<UpstreamState> => {
    const answer = once(child, 'message') as Promise<[UpstreamReport]>;
    child.send('state');
    const [report] = await answer;
    if (report.type !== 'state') throw new Error('the upstream did not tell its state');
    return report.state;
  };
  return {
    url: `http://127.0.0.1:${first.port}/v1`,
    state,
    async stateWhen(fits, withinMs) {
      const deadline = clock() + withinMs;
      let last = await state();
      while (!fits(last) && clock() < deadline) {
        await new Promise((resolve) => setTimeout(resolve, askAgainMs));
        last = await state();
      }
      return last;
    },
    stop: () => void child.kill('SIGKILL'),
  };
}
