import { clash, eachObject, type MemberPath, type MemberRule } from '../wire/member-edits.js';
import { editedList, isForwarded } from '../wire/passed-headers.js';
import { propertiesOf, propertyOf, textsOf } from './problem.js';
import type { RuleSettings } from './rules-schema.js';
import type { ClientHeaders, ConfiguredHeaders, TargetRules, ThinkingForm } from './types.js';

/** Parses a member's name in a file, such as `generationConfig.topK` or `input[].phase`. */
export function memberPath(member: string): MemberPath {
  return member.replaceAll(`${eachObject}.`, `.${eachObject}.`).split('.');
}

/** A rule for a member, and where it stands among the rules. */
interface NamedRule {
  readonly at: readonly [kind: string, member: string | number];
  readonly rule: MemberRule;
}

/** Reads the rules for members from a value of any shape. Skips what cannot be read. */
export function namedRules(rules: unknown): readonly NamedRule[] {
  const named: NamedRule[] = [];
  for (const kind of ['keep', 'drop'] as const) {
    for (const [index, member] of textsOf(propertyOf(rules, kind)))
      if (member !== '') named.push({ at: [kind, index], rule: { kind, path: memberPath(member) } });
  }
  for (const [member, value] of propertiesOf(propertyOf(rules, 'set')))
    named.push({
      at: ['set', member],
      rule: { kind: 'set', path: memberPath(member), json: JSON.stringify(value) },
    });
  for (const [member, to] of propertiesOf(propertyOf(rules, 'rename'))) {
    if (typeof to !== 'string' || to === '') continue;
    const name = memberPath(to).at(-1) ?? '';
    named.push({ at: ['rename', member], rule: { kind: 'rename', path: memberPath(member), to: name } });
  }
  for (const [member, bounds] of propertiesOf(propertyOf(rules, 'clamp')))
    named.push({
      at: ['clamp', member],
      rule: {
        kind: 'clamp',
        path: memberPath(member),
        min: numberOf(propertyOf(bounds, 'min')),
        max: numberOf(propertyOf(bounds, 'max')),
      },
    });
  return named;
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}

/**
 * Merges layers of rules.
 * @param layers later ones take precedence
 * @returns null if they change nothing in a body
 */
export function mergeRules(layers: readonly RuleSettings[]): TargetRules | null {
  let members: readonly MemberRule[] = [];
  const efforts = new Map<string, string>();
  const roles = new Map<string, string>();
  let dropsSampling = false;
  let thinking: ThinkingForm | null = null;
  let fillsReasoning = false;
  for (const layer of layers) {
    const own = namedRules(layer).map(({ rule }) => rule);
    members = [...members.filter((rule) => !own.some((other) => clash(rule, other))), ...own];
    for (const [word, other] of Object.entries(layer.efforts ?? {})) efforts.set(word.toLowerCase(), other);
    for (const [word, other] of Object.entries(layer.roles ?? {})) roles.set(word.toLowerCase(), other);
    dropsSampling = layer.sampling === undefined ? dropsSampling : !layer.sampling;
    thinking = layer.thinking ?? thinking;
    fillsReasoning = layer.fillReasoning ?? fillsReasoning;
  }
  const isFlagged = dropsSampling || thinking !== null || fillsReasoning;
  const isEmpty = members.length + efforts.size + roles.size === 0 && !isFlagged;
  return isEmpty ? null : { members, efforts, roles, dropsSampling, thinking, fillsReasoning };
}

/**
 * Adds what happens to a body that turns thinking off, unless the rules say it. A model that adapts its thinking
 * refuses such a body.
 */
export function rulesForOff(rules: TargetRules | null): TargetRules | null {
  if (rules === null) return neverOff;
  const isRuled = rules.thinking !== null || rules.members.some(({ path }) => path[0] === 'thinking');
  return isRuled ? null : { ...rules, thinking: 'never_off' };
}

const neverOff: TargetRules = {
  members: [],
  efforts: new Map(),
  roles: new Map(),
  dropsSampling: false,
  thinking: 'never_off',
  fillsReasoning: false,
};

/** The headers in an upstream's settings. */
interface GivenHeaders {
  readonly headers: ConfiguredHeaders['headers'];
  readonly forwardHeaders?: readonly string[];
}

const betaHeaders: readonly string[] = ['anthropic-beta', 'openai-beta'];

/**
 * Merges the headers of requests to an upstream or target.
 * @param upstream headers apart from the rules, names in lower case. A configured header replaces a forwarded one.
 * @param layers rules. Later ones take precedence.
 */
export function mergeHeaders(
  { headers: given, forwardHeaders = [] }: GivenHeaders,
  layers: readonly RuleSettings[],
): ConfiguredHeaders {
  const set = new Map(given);
  const dropped = new Set<string>();
  const pass = new Set(forwardHeaders.filter((name) => !set.has(name)));
  const added = new Set<string>();
  const droppedBetas = new Set<string>();
  for (const { headers = {}, betas = {} } of layers) {
    for (const name of lowerCase(headers.drop)) {
      set.delete(name);
      pass.delete(name);
      dropped.add(name);
    }
    for (const name of lowerCase(headers.pass)) {
      set.delete(name);
      dropped.delete(name);
      pass.add(name);
    }
    for (const [field, value] of Object.entries(headers.set ?? {})) {
      const name = field.toLowerCase();
      dropped.delete(name);
      pass.delete(name);
      set.set(name, value);
    }
    for (const beta of betas.drop ?? []) {
      added.delete(beta);
      droppedBetas.add(beta);
    }
    for (const beta of betas.add ?? []) {
      droppedBetas.delete(beta);
      added.add(beta);
    }
    // A header that is set is also a list, to which betas of the same layer and of later ones are added.
    for (const name of betaHeaders) {
      const list = set.get(name);
      if (list !== undefined) set.set(name, editedList(list, betas.add ?? [], new Set(betas.drop)));
    }
  }
  const without = new Set([...set.keys(), ...dropped]);
  const isEmpty = without.size + pass.size + added.size + droppedBetas.size === 0;
  const clientHeaders: ClientHeaders = {
    without,
    editsForwarded: [...without].some(isForwarded),
    pass,
    addedBetas: [...added],
    droppedBetas,
  };
  return { headers: [...set], clientHeaders: isEmpty ? null : clientHeaders };
}

function lowerCase(names: readonly string[] | undefined): readonly string[] {
  return (names ?? []).map((name) => name.toLowerCase());
}
