import type { Protocol, TargetRules } from '../config/types.js';
import { bodyEdits, type RuledBody } from '../protocols/target-rules/body-edits.js';
import { editMembers, type ObjectEdits } from '../wire/member-edits.js';

/** What rules come to for each kind of body, of which there are few. */
const known = new WeakMap<TargetRules, Map<string, ObjectEdits>>();

/**
 * A body as the rules of a target have it.
 * @param body valid JSON; not changed
 * @returns pieces of it with the new parts between them; only `body` itself where the rules change nothing
 */
export function ruledBody(rules: TargetRules, body: Buffer, kind: RuledBody): readonly Buffer[] {
  return editMembers(body, editsFor(rules, kind));
}

/** A body that the gateway has written. */
export function writtenKind(protocol: Protocol): RuledBody {
  return { protocol, isTranslated: true, isCount: false, model: null, includeUsage: false };
}

function editsFor(rules: TargetRules, kind: RuledBody): ObjectEdits {
  const { protocol, isTranslated, isCount, model, includeUsage } = kind;
  const name = `${protocol} ${isTranslated} ${isCount} ${includeUsage} ${model}`;
  let all = known.get(rules);
  if (all === undefined) {
    all = new Map();
    known.set(rules, all);
  }
  let edits = all.get(name);
  if (edits === undefined) {
    edits = bodyEdits(rules, kind);
    all.set(name, edits);
  }
  return edits;
}
