import { setTimeout as pause } from 'node:timers/promises';
import { type ConsoleGateway, consoleKeys } from './gateway.js';

const pauseMs = 25;

/** A text of a client: nothing of it belongs on the page. */
export const prompt = 'Tell me something that takes a few words.';
const messages = [{ role: 'user', content: prompt }];

/** One round of calls: all text protocols, two keys, a refusal of each kind, and a target that is down. */
const calls: readonly (readonly [path: string, key: string, body: object])[] = [
  ['/v1/chat/completions', consoleKeys.demo, { model: 'talk', messages }],
  ['/v1/chat/completions', consoleKeys.demo, { model: 'talk', messages, stream: true }],
  ['/v1/messages', consoleKeys.demo, { model: 'talk', messages, max_tokens: 100 }],
  ['/v1/responses', consoleKeys.trial, { model: 'talk', input: 'Hello there.' }],
  ['/v1/chat/completions', consoleKeys.trial, { model: 'talk', messages }],
  ['/v1/embeddings', consoleKeys.demo, { model: 'vectors', input: 'near' }],
  ['/v1/chat/completions', consoleKeys.demo, { model: 'gone', messages }],
  ['/v1/embeddings', consoleKeys.trial, { model: 'vectors', input: 'not for this key' }],
  ['/v1/chat/completions', 'sk-nobody', { model: 'talk', messages }],
];

interface ConsoleLoad {
  /** Answers so far, by their status. */
  readonly statuses: Readonly<Record<number, number>>;
  /** Ends with the round that is under way, when all of its answers are there. */
  stop(): Promise<void>;
}

/** Calls a gateway of `startConsoleGateway` one by one, round after round. */
export function startConsoleLoad(gateway: ConsoleGateway): ConsoleLoad {
  const statuses: Record<number, number> = {};
  let isStopped = false;
  const run = async (): Promise<void> => {
    while (!isStopped) {
      for (const [path, key, body] of calls) {
        const status = await gateway.call(path, key, body);
        statuses[status] = (statuses[status] ?? 0) + 1;
        await pause(pauseMs);
      }
    }
  };
  const ran = run();
  // Told by `stop`, which comes later.
  ran.catch(() => {});
  return {
    statuses,
    stop() {
      isStopped = true;
      return ran;
    },
  };
}
