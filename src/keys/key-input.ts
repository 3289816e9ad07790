import type { Budget, RateLimits } from '../config/types.js';
import { shortened } from '../errors.js';
import { readDateTime } from '../wire/date-time.js';
import { isObject } from '../wire/json.js';
import { isPeriod, isPositive, isSum, keyIdPattern, type ManagedKey } from './managed-key.js';

/** The settings of a key that operators choose. */
type KeySettings = Pick<ManagedKey, 'label' | 'groups' | 'limits' | 'budget' | 'mayRoute' | 'expiresAt'>;

export interface NewKey extends KeySettings {
  /** Null for a generated id. */
  readonly id: string | null;
}

/** Each given field replaces the old one as a whole. */
export type KeyUpdate = Partial<KeySettings>;

/** The context of a check. */
export interface KeyRules {
  /** Names of the groups that a key may have. */
  readonly groups: ReadonlySet<string>;
  /** Unix milliseconds. */
  readonly now: number;
}

interface InputProblem {
  /** The invalid field, as operators write it: `limits.requestsPerMinute`. Empty for the input itself. */
  readonly field: string;
  readonly message: string;
}

/** The result of a check: the value, or all problems found. */
export type Checked<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly problems: readonly InputProblem[] };

const longestLabel = 200;
const maxGroups = 64;
const longestGraceMs = 30 * 24 * 60 * 60 * 1000;
/** Most unknown fields that are reported one by one. */
const maxProblems = 20;
const longestFieldShown = 64;

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const controlCharacter = /[\u0000-\u001f\u007f]/;

const settings = {
  label: checkLabel,
  groups: checkGroups,
  limits: checkLimits,
  budget: checkBudget,
  mayRoute: checkMayRoute,
  expiresAt: checkExpiry,
} as const;

/**
 * Checks the input for a new key. Only `groups` is required; an absent field counts as null.
 * @param input parsed JSON
 */
export function checkNewKey(input: unknown, rules: KeyRules): Checked<NewKey> {
  const found = new Problems();
  const given = found.fields(input, '', ['id', ...Object.keys(settings)]);
  const checked = checkSettings(given, rules, found);
  const id = given.id === null || given.id === undefined ? null : checkId(given.id, found);
  if (given.groups === undefined && isObject(input)) found.add('groups', 'is missing');
  const value: NewKey = {
    label: '',
    groups: [],
    limits: null,
    budget: null,
    mayRoute: false,
    expiresAt: null,
    ...checked,
    id,
  };
  return found.outcome(value);
}

/**
 * Checks the input for a change of a key: any of its settings.
 * @param input parsed JSON
 */
export function checkKeyUpdate(input: unknown, rules: KeyRules): Checked<KeyUpdate> {
  const found = new Problems();
  const given = found.fields(input, '', Object.keys(settings));
  return found.outcome(checkSettings(given, rules, found));
}

/**
 * Checks the grace period of a rotation.
 * @param input milliseconds; null or undefined for no grace
 */
export function checkGraceMs(input: unknown): Checked<number> {
  const found = new Problems();
  const value = input ?? 0;
  if (value !== 0 && (!isPositive(value) || value > longestGraceMs)) {
    found.add('graceMs', `must be a whole number of milliseconds from 0 to ${longestGraceMs}`);
  }
  return found.outcome(value as number);
}

type Given = Readonly<Record<string, unknown>>;

class Problems {
  readonly #problems: InputProblem[] = [];

  add(field: string, message: string): void {
    if (this.#problems.length < maxProblems) this.#problems.push({ field, message });
  }

  /** Reports unknown fields. @returns the fields of an object; none for any other value */
  fields(value: unknown, path: string, known: readonly string[]): Given {
    if (!isObject(value)) {
      this.add(path, 'must be an object');
      return {};
    }
    for (const name of Object.keys(value)) {
      if (!known.includes(name))
        this.add(
          path === '' ? shortened(name, longestFieldShown) : `${path}.${shortened(name, longestFieldShown)}`,
          'is not known here',
        );
    }
    return value;
  }

  outcome<Value>(value: Value): Checked<Value> {
    return this.#problems.length === 0 ? { ok: true, value } : { ok: false, problems: this.#problems };
  }
}

function checkSettings(given: Given, rules: KeyRules, found: Problems): KeyUpdate {
  const names = Object.keys(settings) as (keyof KeySettings)[];
  return Object.fromEntries(
    names
      .filter((name) => Object.hasOwn(given, name) && given[name] !== undefined)
      .map((name) => [name, settings[name](given[name], found, rules)]),
  );
}

function checkId(value: unknown, found: Problems): string | null {
  if (typeof value === 'string' && keyIdPattern.test(value)) return value;
  found.add('id', 'must be 1 to 64 letters, digits, ".", "_" and "-", and begin with a letter or a digit');
  return null;
}

function checkLabel(value: unknown, found: Problems): string {
  if (value === null) return '';
  if (typeof value === 'string' && value.length <= longestLabel && !controlCharacter.test(value))
    return value;
  found.add('label', `must be a text of at most ${longestLabel} characters without control characters`);
  return '';
}

function checkGroups(value: unknown, found: Problems, rules: KeyRules): readonly string[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > maxGroups) {
    found.add('groups', `must be a list of 1 to ${maxGroups} names of groups`);
    return [];
  }
  value.forEach((name: unknown, index) => {
    const field = `groups[${index}]`;
    if (typeof name !== 'string') found.add(field, 'must be a text');
    else if (!rules.groups.has(name))
      found.add(field, `there is no group ${JSON.stringify(shortened(name, longestFieldShown))}`);
  });
  return [...new Set(value as string[])];
}

function checkLimits(value: unknown, found: Problems): RateLimits | null {
  if (value === null) return null;
  const given = found.fields(value, 'limits', ['requestsPerMinute', 'tokensPerMinute', 'concurrent']);
  const limit = (name: keyof RateLimits): number | null => {
    const one = given[name] ?? null;
    if (one === null || isPositive(one)) return one;
    found.add(`limits.${name}`, 'must be a whole number above 0');
    return null;
  };
  const limits: RateLimits = {
    requestsPerMinute: limit('requestsPerMinute'),
    tokensPerMinute: limit('tokensPerMinute'),
    concurrent: limit('concurrent'),
  };
  return Object.values(limits).every((each) => each === null) ? null : limits;
}

function checkBudget(value: unknown, found: Problems): Budget | null {
  if (value === null) return null;
  const { usd, per } = found.fields(value, 'budget', ['usd', 'per']);
  if (!isSum(usd)) found.add('budget.usd', 'must be a number above 0');
  if (!isPeriod(per)) found.add('budget.per', 'must be "day", "week" or "month"');
  return isSum(usd) && isPeriod(per) ? { usd, per } : null;
}

function checkMayRoute(value: unknown, found: Problems): boolean {
  if (value === null || typeof value === 'boolean') return value ?? false;
  found.add('mayRoute', 'must be true or false');
  return false;
}

function checkExpiry(value: unknown, found: Problems, { now }: KeyRules): number | null {
  if (value === null) return null;
  const time = typeof value === 'string' ? readDateTime(value) : null;
  if (time === null) found.add('expiresAt', 'must be a date and time such as 2027-01-01T00:00:00Z');
  else if (time <= now) found.add('expiresAt', 'must be in the future');
  return time;
}
