import type { TargetStateView, TargetView } from '../../metrics/live-state.js';

/** The tone of a badge. */
export type Tone = 'good' | 'warn' | 'bad' | 'idle';

/** How a target's state is shown; the least healthy state has the largest rank. */
export const targetStates: Readonly<
  Record<TargetStateView, { readonly title: string; readonly tone: Tone; readonly rank: number }>
> = {
  open: { title: 'Open', tone: 'bad', rank: 3 },
  'half-open': { title: 'Half open', tone: 'warn', rank: 2 },
  cooling: { title: 'Cooling', tone: 'warn', rank: 1 },
  closed: { title: 'Closed', tone: 'good', rank: 0 },
};

/** All failures of a target, of every result. */
export function failuresOf({ failures }: TargetView): number {
  let sum = 0;
  for (const number of Object.values(failures)) sum += number;
  return sum;
}

/** Unhealthy targets first, then those with the most attempts. */
export function illFirst(targets: readonly TargetView[]): readonly TargetView[] {
  return [...targets].sort(
    (a, b) => targetStates[b.state].rank - targetStates[a.state].rank || b.attempts - a.attempts,
  );
}
