import { setTimeout as pause } from 'node:timers/promises';
import { openConnection } from '../support/load/connection.js';
import { isWhole } from '../support/load/load.js';
import { loadRequest } from '../support/load/request.js';

const pauseMs = 10;

/** Chat calls that go on beside something else. */
interface ChatLoad {
  /** Ends it. @returns what was not answered with a whole 200, and the longest wait for an answer */
  stop(): Promise<{
    readonly answers: number;
    readonly problems: readonly string[];
    readonly longestMs: number;
  }>;
}

/** Starts one client that makes one chat call after the other. */
export function startChatLoad(port: number): ChatLoad {
  const request = loadRequest({ does: 'complete' }, { model: 'talk' });
  const problems: string[] = [];
  let answers = 0;
  let longestMs = 0;
  let stopped = false;
  const run = async (): Promise<void> => {
    const connection = await openConnection(port);
    while (!stopped) {
      const sentAt = performance.now();
      const answer = await connection.ask(request);
      longestMs = Math.max(longestMs, performance.now() - sentAt);
      if (isWhole(answer)) answers += 1;
      else problems.push(`${answer.status} ${answer.text}`);
      await pause(pauseMs);
    }
    connection.close();
  };
  const running = run().catch((error: unknown) => void problems.push(String(error)));
  return {
    async stop() {
      stopped = true;
      await running;
      return { answers, problems, longestMs };
    },
  };
}
