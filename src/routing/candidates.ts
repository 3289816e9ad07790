import type { Target } from '../config/types.js';

/**
 * Orders the targets of a model for one call: lower priority first; among equals the first is drawn by weight and
 * the others follow in turn.
 * @param targets sorted by priority
 * @param draw a number in [0, 1)
 */
export function orderTargets(targets: readonly Target[], draw: number): readonly Target[] {
  if (targets.length < 2) return targets;
  const ordered: Target[] = [];
  for (let start = 0; start < targets.length; ) {
    let end = start + 1;
    while (end < targets.length && targets[end]?.priority === targets[start]?.priority) end++;
    const first = draw === 0 ? start : drawByWeight(targets, start, end, draw);
    for (let i = first; i < end; i++) ordered.push(targets[i] as Target);
    for (let i = start; i < first; i++) ordered.push(targets[i] as Target);
    start = end;
  }
  return ordered;
}

function drawByWeight(targets: readonly Target[], start: number, end: number, draw: number): number {
  let total = 0;
  for (let i = start; i < end; i++) total += targets[i]?.weight ?? 0;
  let left = draw * total;
  for (let i = start; i < end; i++) {
    left -= targets[i]?.weight ?? 0;
    if (left < 0) return i;
  }
  return start;
}
