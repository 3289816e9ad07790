import type { Test } from 'tap';
import type { LedgerRecord } from '../../src/usage/ledger-record.js';
import type { TotalName } from '../../src/usage/sums.js';
import { eventually } from './eventually.js';
import { type GatewayProcesses, startGateway } from './gateway.js';
import { loadKey } from './load/request.js';
import { tasksGateway } from './tasks/gateway.js';

const token = 'a-token-of-operators';
const askAgainMs = 50;

/** USD for a million tokens, a second or a call. */
export const prices = {
  talk: { input: 1.25, output: 10, cached: 0.125 },
  vectors: { input: 0.02 },
  pictures: { perCall: 0.04 },
  voice: { perSecond: 0.006 },
  films: { perSecond: 0.1, perCall: 0.01 },
} as const;

/** A line of `GET /usage/lines`, with its time as text. */
export type UsageLine = Omit<LedgerRecord, 'at'> & { readonly at: string };

export type ReportRow = Readonly<Record<TotalName | 'mediaSeconds' | 'costUsd', number>> & {
  readonly day?: string;
  readonly key?: string;
  readonly model?: string;
};

export interface UsageReportAnswer {
  readonly from: string;
  readonly to: string;
  readonly rows: readonly ReportRow[];
  readonly total: ReportRow;
  readonly complete: boolean;
}

/** A gateway with prices, and what its operators see. */
export interface UsageGateway {
  readonly gateway: GatewayProcesses;
  readonly adminUrl: string;
  /** Sends a request to the operators' listener. */
  admin(path: string): Promise<Response>;
  /** Posts a JSON body as a client with the load's key. */
  post(path: string, body: unknown, signal?: AbortSignal): Promise<Response>;
  lines(query?: string): Promise<readonly UsageLine[]>;
  /** Waits until the requests with these ids have lines. @returns their lines, in the order of the ids */
  linesOf(...ids: readonly (string | null)[]): Promise<readonly UsageLine[]>;
  report(query?: string): Promise<UsageReportAnswer>;
}

export interface UsageGatewayOptions {
  /** Base URL of the upstream for an SDK, with `/v1`. */
  readonly upstreamUrl: string;
  readonly store: Readonly<Record<string, unknown>>;
  readonly workers?: number;
  /** Merged into the config. */
  readonly config?: Readonly<Record<string, unknown>>;
}

/** Starts a gateway by its command line, with a price for each model. It is killed with the test. */
export async function startUsageGateway(
  t: Pick<Test, 'teardown'>,
  options: UsageGatewayOptions,
): Promise<UsageGateway> {
  const at = (model: string) => [{ upstream: 'studio', model }];
  const gateway = await startGateway(
    t,
    tasksGateway({
      ...options,
      logLevel: 'info',
      config: {
        admin: { port: 0, token },
        models: {
          talk: {
            protocols: ['chat', 'messages', 'responses'],
            targets: at('sim-text'),
            price: prices.talk,
          },
          free: { protocols: ['chat'], targets: at('sim-text') },
          vectors: { protocols: ['embeddings'], targets: at('sim-embedding'), price: prices.vectors },
          pictures: { protocols: ['images'], targets: at('sim-image'), price: prices.pictures },
          voice: { protocols: ['audio'], targets: at('sim-speech'), price: prices.voice },
          m: { protocols: ['video'], targets: at('sim-video'), price: prices.films },
        },
        ...options.config,
      },
    }),
  );
  t.teardown(() => gateway.end());
  const adminUrl = await gateway.adminUrl();
  const admin = (path: string): Promise<Response> =>
    fetch(adminUrl + path, { headers: { authorization: `Bearer ${token}` } });
  const lines = async (query = ''): Promise<readonly UsageLine[]> => {
    const text = await (await admin(`/usage/lines${query}`)).text();
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as UsageLine);
  };
  return {
    gateway,
    adminUrl,
    admin,
    lines,
    post: (path, body, signal) =>
      fetch(gateway.baseUrl + path, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${loadKey}`,
          'content-type': 'application/json',
          'anthropic-version': '2023-06-01',
        },
        body: JSON.stringify(body),
        ...(signal === undefined ? {} : { signal }),
      }),
    linesOf(...ids) {
      const find = async (): Promise<UsageLine[]> => {
        const all = await lines();
        return ids.flatMap((id) => all.find(({ requestId }) => requestId === id) ?? []);
      };
      return eventually(find, { fits: ({ length }) => length === ids.length, everyMs: askAgainMs });
    },
    report: async (query = '') => (await admin(`/usage${query}`)).json() as Promise<UsageReportAnswer>,
  };
}

/** Makes a chat body for the model `talk`. */
export function chatBody(text: string, more: Readonly<Record<string, unknown>> = {}): object {
  return { model: 'talk', messages: [{ role: 'user', content: text }], ...more };
}
