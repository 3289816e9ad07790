/** So many units, used at a time of the simulation. */
export interface Use {
  readonly at: number;
  amount: number;
}

/** @returns the most that was used in any minute, both ends counted, beyond what was overdrawn in it */
export function worstMinute(uses: readonly Use[], overdrafts: readonly Use[] = []): number {
  const used = [...uses].sort((one, other) => one.at - other.at);
  let worst = 0;
  let sum = 0;
  let first = 0;
  for (const { at, amount } of used) {
    sum += amount;
    for (let left = used[first]; left !== undefined && left.at < at - 60_000; left = used[++first])
      sum -= left.amount;
    const overdrawn = overdrafts.filter((each) => each.at <= at && each.at >= at - 60_000);
    worst = Math.max(worst, sum - overdrawn.reduce((total, each) => total + each.amount, 0));
  }
  return worst;
}
