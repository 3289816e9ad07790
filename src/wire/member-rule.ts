/** Path of a member within a JSON object, such as `['generationConfig', 'topK']`. */
export type MemberPath = readonly string[];

/** How one member of a body is changed. */
export type MemberRule =
  /** Leaves the member unchanged, and overrides rules of lower precedence. */
  | { readonly kind: 'keep'; readonly path: MemberPath }
  | { readonly kind: 'drop'; readonly path: MemberPath }
  /** Sets the value, whether or not the member exists. */
  | { readonly kind: 'set'; readonly path: MemberPath; readonly json: string }
  /** Renames the member within its object. If a member with the new name exists, it stays, and this one is removed. */
  | { readonly kind: 'rename'; readonly path: MemberPath; readonly to: string }
  /** Clamps a number to two bounds, one of which may be null. */
  | {
      readonly kind: 'clamp';
      readonly path: MemberPath;
      readonly min: number | null;
      readonly max: number | null;
    };

/** Returns the paths that a rule affects: that of its member, and the new one for a rename. */
export function placesOf(rule: MemberRule): readonly MemberPath[] {
  return rule.kind === 'rename' ? [rule.path, [...rule.path.slice(0, -1), rule.to]] : [rule.path];
}

/**
 * Whether two rules conflict: they affect the same member, or one affects an object that contains the other's member.
 * Clamping the result of a rename is not a conflict.
 */
export function clash(one: MemberRule, other: MemberRule): boolean {
  const [from, to] = placesOf(one);
  const [otherFrom, otherTo] = placesOf(other);
  for (const place of [from, to]) {
    for (const otherPlace of [otherFrom, otherTo]) {
      if (place === undefined || otherPlace === undefined || !begins(place, otherPlace)) continue;
      const isClampedName =
        place.length === otherPlace.length &&
        ((place === to && other.kind === 'clamp') || (otherPlace === otherTo && one.kind === 'clamp'));
      if (!isClampedName) return true;
    }
  }
  return false;
}

/** Whether one of two paths is a prefix of the other. */
function begins(one: MemberPath, other: MemberPath): boolean {
  const [short, long] = one.length < other.length ? [one, other] : [other, one];
  return short.every((name, index) => name === long[index]);
}
