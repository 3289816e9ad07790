import type { KeyBudget, KeyEntry } from './key.js';

/** The values of the dialog's fields, as typed. */
export interface KeyFields {
  readonly id: string;
  readonly label: string;
  readonly groups: readonly string[];
  readonly requestsPerMinute: string;
  readonly tokensPerMinute: string;
  readonly concurrent: string;
  readonly usd: string;
  readonly per: KeyBudget['per'];
  /** In UTC, as `2027-01-01T00:00`; empty for never. */
  readonly expiresAt: string;
  readonly mayRoute: boolean;
}

export type FieldName = keyof KeyFields;
export type FieldProblems = Readonly<Partial<Record<FieldName, string>>>;

/** A body for the gateway, or the problems of the fields. */
type FormOutcome =
  | { readonly ok: true; readonly body: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly problems: FieldProblems };

export const noFields: KeyFields = {
  id: '',
  label: '',
  groups: [],
  requestsPerMinute: '',
  tokensPerMinute: '',
  concurrent: '',
  usd: '',
  per: 'month',
  expiresAt: '',
  mayRoute: false,
};

/** The field values for a key. */
export function fieldsOf({ id, label, groups, limits, budget, mayRoute, expiresAt }: KeyEntry): KeyFields {
  const text = (value: number | null | undefined): string => (value == null ? '' : `${value}`);
  return {
    id,
    label,
    groups,
    requestsPerMinute: text(limits?.requestsPerMinute),
    tokensPerMinute: text(limits?.tokensPerMinute),
    concurrent: text(limits?.concurrent),
    usd: text(budget?.usd),
    per: budget?.per ?? noFields.per,
    expiresAt:
      expiresAt === null ? '' : new Date(expiresAt).toISOString().slice(0, '2027-01-01T00:00'.length),
    mayRoute,
  };
}

/** The body that creates a key. */
export function newKeyBody(fields: KeyFields): FormOutcome {
  const { settings, problems } = read(fields);
  if (Object.keys(problems).length > 0) return { ok: false, problems };
  const id = fields.id.trim();
  return { ok: true, body: { ...(id === '' ? {} : { id }), ...settings } };
}

/**
 * The body that changes a key, with the changed fields only. Settings that the fields do not show in full, such as the
 * seconds of an expiry, are thus kept. Without a change it contains only the revision.
 */
export function keyChangeBody(key: KeyEntry, fields: KeyFields): FormOutcome {
  const before = fieldsOf(key);
  const { settings, problems } = read(fields);
  const isSame = (...names: readonly FieldName[]): boolean =>
    names.every((name) => before[name] === fields[name]);
  const unchanged: Readonly<Record<keyof typeof settings, boolean>> = {
    label: isSame('label'),
    groups: `${[...before.groups].sort()}` === `${[...fields.groups].sort()}`,
    limits: isSame('requestsPerMinute', 'tokensPerMinute', 'concurrent'),
    budget: fields.usd.trim() === '' ? before.usd === '' : isSame('usd', 'per'),
    expiresAt: isSame('expiresAt'),
    mayRoute: isSame('mayRoute'),
  };
  if (Object.keys(problems).length > 0) return { ok: false, problems };
  const changes = Object.entries(settings).filter(([name]) => !unchanged[name as keyof typeof settings]);
  const { revision } = key;
  return {
    ok: true,
    body: { ...Object.fromEntries(changes), ...(revision === undefined ? {} : { revision }) },
  };
}

/** Whether a body of `keyChangeBody` changes anything. */
export function changesSomething(body: Readonly<Record<string, unknown>>): boolean {
  return Object.keys(body).some((name) => name !== 'revision');
}

const fieldOfParam: Readonly<Record<string, FieldName>> = {
  id: 'id',
  label: 'label',
  groups: 'groups',
  limits: 'requestsPerMinute',
  'limits.requestsPerMinute': 'requestsPerMinute',
  'limits.tokensPerMinute': 'tokensPerMinute',
  'limits.concurrent': 'concurrent',
  budget: 'usd',
  'budget.usd': 'usd',
  'budget.per': 'per',
  expiresAt: 'expiresAt',
  mayRoute: 'mayRoute',
};

/**
 * The field that an error of the gateway is about.
 * @param param the gateway's name of the field: `limits.concurrent`, `groups[1]`
 * @returns null if there is none
 */
export function fieldOf(param: string | null): FieldName | null {
  return fieldOfParam[(param ?? '').replace(/\[\d+\]$/, '')] ?? null;
}

/** The message of an error about its field, without the gateway's name of the field. */
export function fieldMessage({
  param,
  message,
}: {
  readonly param: string | null;
  readonly message: string;
}): string {
  const text = message.startsWith(`${param}: `) ? message.slice(`${param}: `.length) : message;
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

interface Settings {
  readonly label: string;
  readonly groups: readonly string[];
  readonly limits: object | null;
  readonly budget: object | null;
  readonly expiresAt: string | null;
  readonly mayRoute: boolean;
}

function read(fields: KeyFields): { readonly settings: Settings; readonly problems: FieldProblems } {
  const problems: Partial<Record<FieldName, string>> = {};
  const number = (name: 'requestsPerMinute' | 'tokensPerMinute' | 'concurrent' | 'usd'): number | null => {
    const text = fields[name].trim();
    if (text === '') return null;
    const value = Number(text);
    const isRight = value > 0 && (name === 'usd' ? Number.isFinite(value) : Number.isSafeInteger(value));
    if (!isRight) problems[name] = name === 'usd' ? 'An amount above 0.' : 'A whole number above 0.';
    return value;
  };
  const limits = {
    requestsPerMinute: number('requestsPerMinute'),
    tokensPerMinute: number('tokensPerMinute'),
    concurrent: number('concurrent'),
  };
  const usd = number('usd');
  if (fields.groups.length === 0) problems.groups = 'At least one group.';
  const time = fields.expiresAt === '' ? null : Date.parse(`${fields.expiresAt}Z`);
  if (time !== null && Number.isNaN(time)) problems.expiresAt = 'A date and a time of day.';
  const settings: Settings = {
    label: fields.label.trim(),
    groups: fields.groups,
    limits: Object.values(limits).every((each) => each === null) ? null : limits,
    budget: usd === null ? null : { usd, per: fields.per },
    expiresAt: time === null || Number.isNaN(time) ? null : new Date(time).toISOString(),
    mayRoute: fields.mayRoute,
  };
  return { settings, problems };
}
