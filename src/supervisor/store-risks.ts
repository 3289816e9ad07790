import type { Logger } from 'pino';
import type { WholeStore } from '../store/create.js';

/** A store that cannot be reached is asked again so often. */
const retryMs = 10_000;

/**
 * Tells in the log, once it can be known, by which settings the store may lose what was told to be kept.
 * @returns what ends it
 */
export function tellRisks(store: Pick<WholeStore, 'risks'>, log: Logger): () => void {
  let timer: NodeJS.Timeout | null = null;
  let isStopped = false;
  const attempt = async (): Promise<void> => {
    try {
      const risks = await store.risks();
      if (!isStopped && risks.length > 0) log.warn({ risks }, 'the store may lose what it was told to keep');
    } catch {
      // That it cannot be reached is told by those who need it.
      if (!isStopped) timer = setTimeout(() => void attempt(), retryMs).unref();
    }
  };
  void attempt();
  return () => {
    isStopped = true;
    if (timer !== null) clearTimeout(timer);
  };
}
