import { Worker } from 'node:worker_threads';
import type {
  EmbeddedAnswer,
  EmbeddedCall,
  EmbeddedResults,
  EmbeddedThreadData,
  NumberedCall,
} from './embedded-calls.js';
import { awaitWork, createExitState } from './embedded-exit.js';
import { checkBatch, checkSumRange } from './ledger-format.js';
import type { Ledger, Store } from './store.js';
import { storeClosed, storeUnavailable } from './unavailable.js';

export interface EmbeddedStoreOptions {
  /** Absolute path of the folder of the data. */
  readonly path: string;
  /** Longest wait of a call; 10 s unless said otherwise. A disk that takes longer is as good as gone. */
  readonly timeoutMs?: number;
}

const defaultTimeoutMs = 10_000;
/** Calls under way in this process. */
const mostWaiting = 4096;

interface Waiting {
  resolve(result: EmbeddedResults[keyof EmbeddedResults]): void;
  reject(error: Error): void;
  readonly timer: NodeJS.Timeout;
}

/**
 * A store in files of this host, on LMDB, for all processes that open the same folder. LMDB runs in a thread of its
 * own, which starts with the first call: a commit waits for the disk and for the other processes, and whoever serves
 * requests cannot. (lmdb-js has a writer thread too, but when a transaction cannot begin there, it never answers and
 * keeps its lock.)
 */
export function createEmbeddedStore(options: EmbeddedStoreOptions): Store & Ledger {
  const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
  const waiting = new Map<number, Waiting>();
  let thread: Worker | null = null;
  let closing: Promise<void> | null = null;
  let lastNumber = 0;
  /** Calls that the thread has not answered, even if nobody waits for them any more. */
  let unanswered = 0;

  const settle = (number: number): Waiting | undefined => {
    const call = waiting.get(number);
    if (call === undefined) return undefined;
    waiting.delete(number);
    clearTimeout(call.timer);
    // A process with nothing else to do may end between two calls, and not during one.
    if (waiting.size === 0) thread?.unref();
    return call;
  };

  const start = (): Worker => {
    const exitState = createExitState();
    const started = new Worker(new URL('./embedded-thread.js', import.meta.url), {
      workerData: { folder: options.path, exitState } satisfies EmbeddedThreadData,
      execArgv: [],
    });
    const onExit = (): void => awaitWork(exitState);
    process.on('exit', onExit);
    const lose = (cause: unknown): void => {
      if (thread !== started) return;
      thread = null;
      unanswered = 0;
      for (const number of [...waiting.keys()]) settle(number)?.reject(storeUnavailable(cause));
    };
    started.on('message', (answers: EmbeddedAnswer[]) => {
      unanswered -= answers.length;
      for (const answer of answers) {
        const call = settle(answer.number);
        if ('failure' in answer) call?.reject(storeUnavailable(new Error(answer.failure)));
        else call?.resolve(answer.result);
      }
    });
    started.on('error', lose);
    started.on('exit', (code) => {
      process.removeListener('exit', onExit);
      lose(new Error(`the thread of the store ended with ${code}`));
    });
    return started;
  };

  const send = <Call extends EmbeddedCall>(call: Call): Promise<EmbeddedResults[Call['name']]> =>
    new Promise((resolve, reject) => {
      thread ??= start();
      lastNumber += 1;
      const number = lastNumber;
      const timer = setTimeout(() => {
        settle(number)?.reject(storeUnavailable(new Error(`the disk gave no answer within ${timeoutMs} ms`)));
      }, timeoutMs);
      waiting.set(number, {
        resolve: (result) => resolve(result as EmbeddedResults[Call['name']]),
        reject,
        timer,
      });
      unanswered += 1;
      thread.ref();
      thread.postMessage({ number, call } satisfies NumberedCall);
    });

  const ask = async <Call extends EmbeddedCall>(call: Call): Promise<EmbeddedResults[Call['name']]> => {
    if (closing !== null) throw storeClosed();
    if (unanswered >= mostWaiting) {
      throw storeUnavailable(new Error(`${mostWaiting} calls of the store are under way`));
    }
    return send(call);
  };

  return {
    kind: 'embedded',
    get: (collection, id) => ask({ name: 'get', collection, id }),
    create: (collection, id, value, ttlMs) => ask({ name: 'create', collection, id, value, ttlMs }),
    replace: (collection, id, value, revision, ttlMs) =>
      ask({ name: 'replace', collection, id, value, revision, ttlMs }),
    async remove(collection, id) {
      await ask({ name: 'remove', collection, id });
    },
    list: (collection, limit, from, order = 'first-to-go') =>
      ask({ name: 'list', collection, limit, from, order }),
    claim: (name, ttlMs) => ask({ name: 'claim', claim: name, ttlMs }),
    async append(ledger, batch) {
      checkBatch(batch);
      return ask({ name: 'append', ledger, batch });
    },
    readLines: (ledger, range, limit, from) => ask({ name: 'readLines', ledger, range, limit, from }),
    async readSums(ledger, range, limit, from) {
      checkSumRange(range);
      return ask({ name: 'readSums', ledger, range, limit, from });
    },
    async sweep() {
      while (await ask({ name: 'sweep' }));
    },
    close() {
      closing ??= thread === null ? Promise.resolve() : send({ name: 'close' }).then(ignore, ignore);
      return closing;
    },
  };
}

function ignore(): void {}
