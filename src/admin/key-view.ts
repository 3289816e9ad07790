import type { ResolvedKey } from '../config/resolve.js';
import type { ManagedKey } from '../keys/managed-key.js';

/** A key as operators see it: neither it nor its hash is in there. Times are RFC 3339. */
export interface KeyView extends Pick<ResolvedKey, 'id' | 'groups' | 'limits' | 'budget' | 'mayRoute'> {
  /** Those of the config file are changed only there. */
  readonly source: 'config' | 'managed';
  readonly readOnly: boolean;
  readonly label: string;
  readonly expiresAt: string | null;
}

export interface ManagedKeyView extends KeyView {
  readonly createdAt: string;
  readonly revokedAt: string | null;
  /** Former keys that still work, of rotations whose grace has not ended. */
  readonly formerKeys: number;
  /** The config file has a key of the same id, which counts instead. */
  readonly overridden: boolean;
  /** Left out where the store has not said it. */
  readonly revision?: number;
}

/** Shows a key of the config file. */
export function configKeyView(key: ResolvedKey): KeyView {
  return { id: key.id, source: 'config', readOnly: true, label: '', ...settingsOf(key) };
}

/**
 * Shows a managed key.
 * @param isOverridden the config file has one of its id
 * @param now Unix milliseconds
 */
export function managedKeyView(
  { record, revision }: { readonly record: ManagedKey; readonly revision?: number },
  isOverridden: boolean,
  now: number = Date.now(),
): ManagedKeyView {
  const end = Math.min(
    record.expiresAt ?? Number.POSITIVE_INFINITY,
    record.revokedAt ?? Number.POSITIVE_INFINITY,
  );
  return {
    id: record.id,
    source: 'managed',
    readOnly: false,
    label: record.label,
    ...settingsOf(record),
    createdAt: dateTime(record.createdAt),
    revokedAt: record.revokedAt === null ? null : dateTime(record.revokedAt),
    formerKeys: record.former.filter(({ until }) => Math.min(until, end) > now).length,
    overridden: isOverridden,
    ...(revision === undefined ? {} : { revision }),
  };
}

function settingsOf({ groups, limits, budget, mayRoute, expiresAt }: ResolvedKey | ManagedKey) {
  return { groups, limits, budget, mayRoute, expiresAt: expiresAt === null ? null : dateTime(expiresAt) };
}

function dateTime(time: number): string {
  return new Date(time).toISOString();
}
