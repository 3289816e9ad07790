/** Names of members that lead from a JSON object to one within it: `['generationConfig', 'topK']`. */
export type MemberPath = readonly string[];

/** What becomes of one member of a body. */
export type MemberRule =
  /** It stays as it is, whatever rules of less weight say. */
  | { readonly kind: 'keep'; readonly path: MemberPath }
  | { readonly kind: 'drop'; readonly path: MemberPath }
  /** It has this value, whether it was there or not. */
  | { readonly kind: 'set'; readonly path: MemberPath; readonly json: string }
  /** It is called otherwise, in the same object; one that has the new name already stays, and this one is left out. */
  | { readonly kind: 'rename'; readonly path: MemberPath; readonly to: string }
  /** A number is kept between two bounds, of which one may be null. */
  | {
      readonly kind: 'clamp';
      readonly path: MemberPath;
      readonly min: number | null;
      readonly max: number | null;
    };

/** The members that a rule speaks of: where it finds one, and where it puts it. */
export function placesOf(rule: MemberRule): readonly MemberPath[] {
  return rule.kind === 'rename' ? [rule.path, [...rule.path.slice(0, -1), rule.to]] : [rule.path];
}

/**
 * Whether two rules cannot both hold: they say different things of one member, or one of them of an object that the
 * other looks into. What a rename gives may be clamped.
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

/** Whether one of two paths begins with the whole other. */
function begins(one: MemberPath, other: MemberPath): boolean {
  const [short, long] = one.length < other.length ? [one, other] : [other, one];
  return short.every((name, index) => name === long[index]);
}
