import type { Test } from 'tap';
import { countersOf } from './counters.js';
import { type GatewayOptions, type RunningGateway, startGateway } from './gateway.js';
import { postJson } from './post-json.js';
import {
  type Answer,
  completion,
  jsonAnswer,
  type RawRequest,
  type RawUpstream,
  startRawUpstream,
} from './upstream.js';

/** Makes an upstream's error with further header lines, each followed by CRLF. */
export const errorAnswer = (status: number, headers = ''): string =>
  jsonAnswer(status, `{"error":{"message":"from the upstream","code":"own_${status}"}}`, headers);

export const goodAnswer: string = jsonAnswer(200, completion);

export interface Routed {
  readonly gateway: RunningGateway;
  readonly upstreams: readonly RawUpstream[];
  /** Makes a chat call. */
  ask(
    headers?: Record<string, string>,
    more?: object,
  ): Promise<{
    readonly status: number;
    readonly retryAfter: string | null;
    readonly shouldRetry: string | null;
    readonly body: string;
  }>;
  /** Numbers of requests that each upstream has received. */
  counts(): number[];
  /** Number of requests that all upstreams have received. */
  total(): number;
  /** The key of each request that an upstream has received. */
  keys(upstream: number): (string | undefined)[];
  /** The values of a family of counters, by their labels. */
  counted(family: string): Record<string, number>;
}

/** Starts a gateway whose model `m` has these upstreams as targets, in order of priority. */
export async function startRouted(
  t: Test,
  answers: readonly Answer[],
  more: Partial<GatewayOptions> = {},
): Promise<Routed> {
  const upstreams = await Promise.all(answers.map((answer) => startRawUpstream(t, answer)));
  const gateway = await startGateway(t, { upstreams: upstreams.map(({ url }) => url), ...more });
  return {
    gateway,
    upstreams,
    ask: async (headers = {}, change = {}) => {
      const answer = await postJson(
        `${gateway.url}/v1/chat/completions`,
        { model: 'm', messages: [{ role: 'user', content: 'hi' }], ...change },
        headers,
      );
      return {
        status: answer.status,
        retryAfter: answer.headers.get('retry-after'),
        shouldRetry: answer.headers.get('x-should-retry'),
        body: await answer.text(),
      };
    },
    counts: () => upstreams.map(({ requests }) => requests.length),
    total: () => upstreams.reduce((sum, { requests }) => sum + requests.length, 0),
    keys: (upstream) => (upstreams[upstream]?.requests ?? []).map(keyOf),
    counted: (family) => countersOf(gateway, family),
  };
}

/** Returns the bearer key of a request. */
export function keyOf({ head }: RawRequest): string | undefined {
  return /^authorization: Bearer (.*)$/im.exec(head)?.[1];
}
