import type { Target } from '../config/types.js';
import { targetLabel } from './gauges.js';

/** A target is another object after each reload, and its name then the same. */
const names = new WeakMap<Target, string>();

/** Upstream and model there, as people read it; made once for each target. */
export function targetName(target: Target): string {
  let name = names.get(target);
  if (name === undefined) {
    name = targetLabel(target.upstream.name, target.model);
    names.set(target, name);
  }
  return name;
}
