import { parseArgs } from 'node:util';

export interface Options {
  readonly rounds: number;
  readonly seconds: number;
  /** Names of works, or null for those that run by default. */
  readonly only: readonly string[] | null;
  readonly contenders: readonly string[] | null;
  readonly json: string | null;
  /** Write the report as Markdown for the manual. */
  readonly readme: boolean;
  readonly withLogs: boolean;
  readonly withLimits: boolean;
  readonly withConsole: boolean;
  /** Keep the processes of a work for all of its rounds, in works without a fixed rate. */
  readonly warm: boolean;
  /** Another compiled `main.js` to race, for example built from another revision. */
  readonly against: string | null;
  /** Cores of the contender, the load client and the upstream. */
  readonly cores: readonly number[];
}

export const usage = `npm run bench -- [options]
  --only A,B        works to run: 1kb, 1kb-sdk, 1kb-all, 1kb-all-20ms, 300kb, sse, drip, events, events-tls, events-delay,
                    translate, translate-kept, translate-sse, translate-drip, latency, keys; and those that run only
                    when they are named:
                    1kb-tls, 1kb-tls-20ms, 1kb-client-tls, 1kb-log, 1kb-connections, 1kb-models, keys-rate, streams,
                    streams-tls, idle-connections, bodies, video, upload, realtime, realtime-sessions, workers, metering,
                    pauses, pauses-causes
  --contenders A,B  of direct, gateway, gateway+logs, gateway+limits, gateway-ledger, gateway+console, nginx,
                    haproxy, against; and, installed from the registry when they are named, portkey, fastify, llms
  --rounds N        rounds of each work (default 5), interleaved, order reversed every round
  --seconds N       length of one measurement (default 3)
  --quick           2 rounds of 1 second, to see that everything runs
  --with-logs       a second gateway with its request log on
  --with-limits     one whose keys have limits that none reaches, and one without a ledger
  --with-console    one whose console somebody watches all the time
  --against FILE    another compiled main.js to race; its CPU time is compared in pairs, round by round
  --warm            processes stay for all rounds of 1kb…, 300kb, sse, drip, translate… and keys, and are warmed up once:
                    what --against wants, with many short rounds (--rounds 100 --seconds 1)
  --cores A,B[,C]   cores of the contender, the load client and the upstream (default 0,1,1)
  --json FILE       every figure as JSON
  --readme          the report as Markdown, with the commit and the date, for src/manual/measured.md`;

const list = (text: string | undefined): readonly string[] | null =>
  text === undefined ? null : text.split(',').filter(Boolean);

/**
 * Reads the command line.
 * @returns the options, or null if the caller asked for help
 * @throws Error for an unknown option or an invalid number
 */
export function readOptions(args: readonly string[]): Options | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      only: { type: 'string' },
      contenders: { type: 'string' },
      json: { type: 'string' },
      readme: { type: 'boolean', default: false },
      warm: { type: 'boolean', default: false },
      against: { type: 'string' },
      cores: { type: 'string' },
      quick: { type: 'boolean', default: false },
      'with-logs': { type: 'boolean', default: false },
      'with-limits': { type: 'boolean', default: false },
      'with-console': { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return null;
  return {
    rounds: positive('--rounds', values.rounds, values.quick ? 2 : 5),
    seconds: positive('--seconds', values.seconds, values.quick ? 1 : 3),
    only: list(values.only),
    contenders: list(values.contenders),
    json: values.json ?? null,
    readme: values.readme,
    withLogs: values['with-logs'],
    withLimits: values['with-limits'],
    withConsole: values['with-console'],
    warm: values.warm,
    against: values.against ?? null,
    cores: (list(values.cores) ?? ['0', '1']).map(Number),
  };
}

function positive(name: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  const number = Number(text);
  if (!Number.isInteger(number) || number < 1) throw new Error(`${name} wants a whole number from 1.`);
  return number;
}
