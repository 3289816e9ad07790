/** What JSON can say. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Puts another value in one place of a copy of `root`: the place is chosen by walking down by `turns`. */
export function damage(root: Json, turns: readonly number[], by: Json | undefined): Json {
  const copy = structuredClone(root);
  let parent: Json = copy;
  for (const [depth, turn] of turns.entries()) {
    if (typeof parent !== 'object' || parent === null) break;
    const keys = Object.keys(parent);
    const key = keys[turn % keys.length];
    if (key === undefined) break;
    const holder = parent as { [key: string]: Json };
    const child: Json = holder[key] ?? null;
    if (depth === turns.length - 1 || typeof child !== 'object' || child === null) {
      if (by !== undefined) holder[key] = by;
      else if (!Array.isArray(parent)) delete holder[key];
      break;
    }
    parent = child;
  }
  return copy;
}
