import { Worker } from 'node:worker_threads';
import {
  type Asked,
  awaitWork,
  createExitState,
  type EmbeddedAnswer,
  type EmbeddedName,
  type EmbeddedResult,
  type EmbeddedThreadData,
} from './embedded-calls.js';
import { checkBatch, checkSumRange } from './ledger-format.js';
import type { OwnedRecords } from './owned.js';
import { type Ledger, type Store, storeClosed, storeUnavailable } from './store.js';

interface EmbeddedStoreOptions {
  /** Absolute path of the folder of the data. */
  readonly path: string;
  /** Longest duration of a call, in milliseconds. Default: 10 s. A disk that takes longer counts as unavailable. */
  readonly timeoutMs?: number;
}

const defaultTimeoutMs = 10_000;
/** Most calls in flight in this process. */
const mostWaiting = 4096;

interface PendingCall {
  resolve(result: EmbeddedResult): void;
  reject(error: Error): void;
  readonly timer: NodeJS.Timeout;
}

/**
 * A store in files of this host, on LMDB, for all processes that open the same folder. LMDB runs in a separate thread,
 * which is started by the first call. A commit waits for the disk and for other processes, which a thread that serves
 * requests must not do. (lmdb-js has a writer thread too. But if a transaction cannot begin there, it never replies and
 * keeps its lock.)
 */
export function createEmbeddedStore(
  options: EmbeddedStoreOptions,
): Store & Ledger & { readonly owned: OwnedRecords } {
  const link = new EmbeddedLink(options);
  const list = link.asks('list');
  const append = link.asks('append');
  const readSums = link.asks('readSums');
  const sweep = link.asks('sweep');
  return {
    kind: 'embedded',
    get: link.asks('get'),
    create: link.asks('create'),
    replace: link.asks('replace'),
    remove: link.asks('remove'),
    list: (collection, limit, from, order = 'first-to-go') => list(collection, limit, from, order),
    claim: link.asks('claim'),
    calls: null,
    async append(ledger, batch) {
      checkBatch(batch);
      if (batch.calls !== undefined) throw new RangeError('this store has no table of calls');
      const { sums, ...others } = batch;
      const { ids, ...table } = sums;
      return append(ledger, others, table, Buffer.from(JSON.stringify(ids)));
    },
    readLines: link.asks('readLines'),
    async readSums(ledger, range, limit, from) {
      checkSumRange(range);
      return readSums(ledger, range, limit, from);
    },
    async sweep() {
      while (await sweep());
    },
    owned: {
      keep: link.asks('keep'),
      find: link.asks('find'),
      renew: link.asks('renew'),
      drop: link.asks('drop'),
    },
    close: () => link.close(),
  };
}

/** Sends calls to the thread, and settles their promises with its replies. */
class EmbeddedLink {
  readonly #path: string;
  readonly #timeoutMs: number;
  readonly #waiting = new Map<number, PendingCall>();
  #thread: Worker | null = null;
  #closing: Promise<void> | null = null;
  #lastNumber = 0;
  /** Calls of the next message to the thread. */
  #leaving: { readonly number: number; readonly name: EmbeddedName; readonly asked: readonly unknown[] }[] =
    [];
  /** Calls that the thread has not answered, including those that have timed out. */
  #unanswered = 0;

  constructor({ path, timeoutMs = defaultTimeoutMs }: EmbeddedStoreOptions) {
    this.#path = path;
    this.#timeoutMs = timeoutMs;
  }

  /** @returns a function that calls one of the thread's functions */
  asks<Name extends EmbeddedName>(name: Name) {
    return async (...asked: Asked<Name>): Promise<EmbeddedResult<Name>> => {
      if (this.#closing !== null) throw storeClosed();
      if (this.#unanswered >= mostWaiting) {
        throw storeUnavailable(new Error(`${mostWaiting} calls of the store are under way`));
      }
      return this.#send(name, asked);
    };
  }

  close(): Promise<void> {
    this.#closing ??=
      this.#thread === null ? Promise.resolve() : this.#send('close', []).then(ignore, ignore);
    return this.#closing;
  }

  #send<Name extends EmbeddedName>(name: Name, asked: Asked<Name>): Promise<EmbeddedResult<Name>> {
    return new Promise((resolve, reject) => {
      this.#thread ??= this.#start();
      this.#lastNumber += 1;
      const number = this.#lastNumber;
      const end = (): void => {
        const fault = new Error(`the disk gave no answer within ${this.#timeoutMs} ms`);
        this.#take(number)?.reject(storeUnavailable(fault));
      };
      // After a blocked event loop, the thread's answer may be waiting. It is read before the immediate runs.
      const timer = setTimeout(() => setImmediate(end), this.#timeoutMs);
      this.#waiting.set(number, {
        resolve: (result) => resolve(result as EmbeddedResult<Name>),
        reject,
        timer,
      });
      this.#unanswered += 1;
      this.#thread.ref();
      // Calls of one turn of the event loop share a message, which costs as much as the work itself.
      if (this.#leaving.length === 0) setImmediate(() => this.#post());
      this.#leaving.push({ number, name, asked });
    });
  }

  #post(): void {
    const calls = this.#leaving;
    this.#leaving = [];
    if (calls.length > 0) this.#thread?.postMessage(calls);
  }

  #start(): Worker {
    const exitState = createExitState();
    // By its name in package.json, since a worker's bundle contains this module and is in another place.
    const thread = new Worker(new URL(import.meta.resolve('#store-thread')), {
      workerData: { folder: this.#path, exitState } satisfies EmbeddedThreadData,
      execArgv: [],
    });
    const onExit = (): void => awaitWork(exitState);
    process.on('exit', onExit);
    thread.on('message', (answers: EmbeddedAnswer[]) => {
      // Messages of a lost thread are for calls that are no longer counted.
      if (this.#thread === thread) this.#onAnswers(answers);
    });
    thread.on('error', (cause) => this.#onLost(thread, cause));
    thread.on('exit', (code) => {
      process.removeListener('exit', onExit);
      this.#onLost(thread, new Error(`the thread of the store ended with ${code}`));
    });
    return thread;
  }

  #onAnswers(answers: readonly EmbeddedAnswer[]): void {
    this.#unanswered -= answers.length;
    for (const answer of answers) {
      const call = this.#take(answer.number);
      if ('failure' in answer) call?.reject(storeUnavailable(new Error(answer.failure)));
      else call?.resolve(answer.result);
    }
  }

  #onLost(thread: Worker, cause: unknown): void {
    if (this.#thread !== thread) return;
    this.#thread = null;
    this.#leaving = [];
    this.#unanswered = 0;
    for (const number of [...this.#waiting.keys()]) this.#take(number)?.reject(storeUnavailable(cause));
  }

  /**
   * Ends the wait of a call.
   * @returns undefined if nobody waits for it any more
   */
  #take(number: number): PendingCall | undefined {
    const call = this.#waiting.get(number);
    if (call === undefined) return undefined;
    this.#waiting.delete(number);
    clearTimeout(call.timer);
    // An idle process may exit between two calls, but not during one.
    if (this.#waiting.size === 0) this.#thread?.unref();
    return call;
  }
}

function ignore(): void {}
