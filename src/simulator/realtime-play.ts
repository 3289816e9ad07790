import type { Act, Stage } from './realtime-faults.js';
import { turnEvents } from './realtime-turn.js';

export interface Pace {
  readonly latencyMs: number;
  /** 0 for no pacing. */
  readonly tokensPerSecond: number;
}

/** Gives a turn event by event, at its pace and that of its reader, with all that shall happen within it. */
export async function play(stage: Stage, acts: readonly Act[], pace: Pace): Promise<void> {
  const { turn, line } = stage;
  if (pace.latencyMs > 0) {
    await line.wait(pace.latencyMs);
  }
  const started = performance.now();
  let tokens = 0;
  let index = 0;
  for (const event of turnEvents(turn)) {
    if (!(await happens(stage, acts, (after) => after === index))) {
      return;
    }
    index += 1;
    if (event.tokens > 0 && pace.tokensPerSecond > 0 && !turn.cancelled) {
      tokens += event.tokens;
      const early = started + (tokens * 1000) / pace.tokensPerSecond - performance.now();
      if (early >= 1) {
        await line.wait(early);
      }
    }
    if (line.closed) {
      return;
    }
    stage.emit(event.type, event.members);
    if (line.isFull) {
      await line.wait('drain');
    }
  }
  await happens(stage, acts, (after) => after >= index);
}

/** @returns whether the turn goes on */
async function happens(
  stage: Stage,
  acts: readonly Act[],
  isNow: (after: number) => boolean,
): Promise<boolean> {
  for (const act of acts) {
    if (isNow(act.after) && !(await act.run(stage))) {
      return false;
    }
  }
  return true;
}
