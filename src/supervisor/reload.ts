import type { Logger } from 'pino';
import type { ReloadOutcome } from '../admin/endpoints.js';
import { ConfigError, formatProblem } from '../config/problem.js';
import type { ResolvedConfig, ResolvedModel } from '../config/resolve.js';
import { inSlices, type Steps } from '../wire/steps.js';

interface ReloadOptions {
  /** In force when the gateway starts. */
  readonly config: ResolvedConfig;
  /**
   * Reads the config again.
   * @throws ConfigError if it cannot be used
   */
  read(): ResolvedConfig | Promise<ResolvedConfig>;
  /**
   * @returns which part of it could not be put in force yet, or null
   * @throws Error if none of it could. The previous config is then still in force.
   */
  apply(config: ResolvedConfig): Promise<string | null>;
  readonly log: Logger;
}

export interface Reloader {
  /** The config in force now. */
  readonly running: ResolvedConfig;
  /** Number of configs that have been in force. */
  readonly generation: number;
  /** The last reload was refused, or is in force only in part. */
  readonly hasFailed: boolean;
  /** Reads the config again and puts it in force. */
  reload(): Promise<ReloadOutcome>;
  /**
   * Reads the config again without putting it in force.
   * @returns its problems
   */
  check(): Promise<readonly string[]>;
}

/** Reloads one at a time. A request during a reload gets the outcome of a later one, which reads the file again. */
export function createReloader({ config, read, apply, log }: ReloadOptions): Reloader {
  let running = config;
  let generation = 1;
  let hasFailed = false;

  const once = async (): Promise<ReloadOutcome> => {
    try {
      const found = await read();
      const kept = await inSlices(keepFromBefore(found, running));
      const fixed = needRestart(running, found);
      const problem = await apply(kept);
      running = kept;
      generation += 1;
      if (fixed.length > 0)
        log.warn({ settings: fixed }, 'changed settings that take effect only after a restart');
      hasFailed = problem !== null;
      if (problem !== null) log.error({ reason: problem }, 'the config is in effect on some workers only');
      return problem === null
        ? { status: 'reloaded', problems: [] }
        : { status: 'partly reloaded', problems: [problem] };
    } catch (error) {
      const reasons = reasonsOf(error);
      hasFailed = true;
      log.error({ reasons }, 'reload refused: the running config stays in effect');
      return { status: 'refused', problems: reasons };
    }
  };
  const checkOnce = async (): Promise<readonly string[]> => {
    try {
      await read();
      return [];
    } catch (error) {
      return reasonsOf(error);
    }
  };

  return {
    get running() {
      return running;
    },
    get generation() {
      return generation;
    },
    get hasFailed() {
      return hasFailed;
    },
    reload: inTurn(once),
    // Files are read one after another. A reload waits for at most two checks, however many are asked for.
    check: inTurn(checkOnce),
  };
}

/**
 * Runs a function one call at a time. All calls during a run share one further run, which begins when the first ends.
 * @param run never rejects
 */
function inTurn<Outcome>(run: () => Promise<Outcome>): () => Promise<Outcome> {
  let current: Promise<Outcome> | null = null;
  let next: Promise<Outcome> | null = null;
  const begin = (): Promise<Outcome> => {
    next = null;
    current = run().finally(() => {
      current = null;
    });
    return current;
  };
  return () => {
    if (current === null) return begin();
    next ??= current.then(begin);
    return next;
  };
}

function reasonsOf(error: unknown): readonly string[] {
  return error instanceof ConfigError
    ? error.problems.map(formatProblem)
    : [error instanceof Error ? error.message : String(error)];
}

/**
 * Keeps what a reload must not change. A known model keeps its date, and a generated secret stays. So does the store: a
 * worker that starts later must not look for its records elsewhere than the others. The operators' listener stays
 * where it is, also if the new file has none: with the tokens that were last in force, since older tokens may be known
 * to people who must not have them. Without one at the start there is none.
 */
function* keepFromBefore(next: ResolvedConfig, running: ResolvedConfig): Steps<ResolvedConfig> {
  const { listen } = running;
  const isKept = (listen.tls === null) !== (next.listen.tls === null);
  const created = new Map<string, number>();
  for (const model of running.models) {
    created.set(model.name, model.created);
    yield;
  }
  const models: ResolvedModel[] = [];
  for (const model of next.models) {
    models.push({ ...model, created: created.get(model.name) ?? model.created });
    yield;
  }
  return {
    ...next,
    listen: {
      ...next.listen,
      host: listen.host,
      port: listen.port,
      tls: isKept ? listen.tls : next.listen.tls,
    },
    secret: next.secret.given ? next.secret : running.secret,
    store: running.store,
    admin: running.admin && {
      ...running.admin,
      ...next.admin,
      host: running.admin.host,
      port: running.admin.port,
    },
    models,
  };
}

/** Lists changed settings that a running gateway cannot apply. */
function needRestart(running: ResolvedConfig, next: ResolvedConfig): string[] {
  const read = (config: ResolvedConfig): [string, string][] => [
    ['listen', JSON.stringify([config.listen.host, config.listen.port, config.listen.tls === null])],
    ['store', JSON.stringify(config.store)],
    ['admin', JSON.stringify(config.admin && [config.admin.host, config.admin.port])],
  ];
  const before = new Map(read(running));
  return read(next).flatMap(([name, value]) => (before.get(name) === value ? [] : [name]));
}
