import type { StoreSettings } from '../../../src/config/types.js';
import { createStore } from '../../../src/store/create.js';
import { endTask, type Settling, settlingWith } from './settling.js';

/** Runs as a separate process: ends a task for each step of its settlement, and stops before that step. */

export const steps = ['claim', 'line', 'budget', 'clear'] as const;

const forEver = new Promise<never>(() => {});

/** @param onStep called before a step */
function stoppedAt(step: (typeof steps)[number], settling: Settling, onStep: () => void): Settling {
  const stop = (): Promise<never> => {
    onStep();
    return forEver;
  };
  const { book, budgets } = settling;
  const stopped = Object.create(book) as typeof book;
  if (step === 'claim') stopped.claim = stop;
  else stopped.claim = (...asked) => book.claim(...asked);
  stopped.find = (id) => book.find(id);
  stopped.update = (...asked) => book.update(...asked);
  stopped.clearOwed = step === 'clear' ? stop : (...asked) => book.clearOwed(...asked);
  return {
    book: stopped,
    budgets: step === 'budget' ? { ...budgets, reserve: stop } : budgets,
    correct: step === 'line' ? stop : settling.correct,
  };
}

const [, script, given] = process.argv;
if (given !== undefined && script === import.meta.filename) {
  const store = createStore(JSON.parse(given) as StoreSettings);
  const settling = settlingWith(store);
  for (const step of steps) {
    await new Promise<void>((resolve, reject) => {
      endTask(store, stoppedAt(step, settling, resolve), `video_${step}`).catch(reject);
    });
    process.send?.(step);
  }
  await forEver;
}
