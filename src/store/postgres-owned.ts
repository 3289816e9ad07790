import { countedBytes, type OwnedRecords } from './owned.js';
import { numberOf, type PostgresLink, sweepInSteps, textOf } from './postgres-link.js';
import { fromColumn, ownerColumn, toColumn, toKey } from './postgres-text.js';
import { storeUnavailable } from './store.js';

/** Most changes in flight in this process. */
const mostChanges = 4096;

/** Records of owners in PostgreSQL. The changes of one owner by a process are executed in order. */
export function createPostgresOwned(link: PostgresLink): {
  readonly records: OwnedRecords;
  sweep(): Promise<void>;
} {
  /** The last change of each owner with changes in flight. */
  const last = new Map<string, Promise<unknown>>();
  let changes = 0;
  const inOrder = async <T>(owner: string, change: () => Promise<T>): Promise<T> => {
    if (changes >= mostChanges) throw storeUnavailable(new Error(`${mostChanges} changes are under way`));
    changes += 1;
    const before = last.get(owner);
    const work = before === undefined ? change() : before.then(change, change);
    last.set(owner, work);
    try {
      return await work;
    } finally {
      changes -= 1;
      if (last.get(owner) === work) last.delete(owner);
    }
  };

  return {
    records: {
      async keep(owner, records, ttlMs, most) {
        // If an id occurs several times, the last record is kept, as if they were written one after the other.
        const byKey = new Map(
          records.map(({ id, value }) => {
            const counted = countedBytes(id, Buffer.byteLength(value));
            return [toKey(id), { value: toColumn(value), counted }] as const;
          }),
        );
        const total = [...byKey.values()].reduce((sum, { counted }) => sum + counted, 0);
        if (total > Math.min(most.owner, most.all)) return false;
        const of = ownerColumn(owner);
        const rows = JSON.stringify([...byKey].map(([key, { value, counted }]) => [key, value, counted]));
        await inOrder(of, () =>
          link.ask(statements.keep, [of, rows, Math.ceil(Math.max(1, ttlMs)), most.owner, most.all]),
        );
        return true;
      },
      async find(owner, ids, mostBytes) {
        const rows = await link.ask(statements.find, [ownerColumn(owner), ids.map(toKey), mostBytes]);
        if (rows.length > 0 && numberOf(rows[0]?.total) > mostBytes) return null;
        const values = rows.map(({ value }) => (value === null ? null : fromColumn(textOf(value))));
        return { values, ofOthers: ids.filter((_, index) => rows[index]?.of_others === true) };
      },
      async renew(owner, ids, ttlMs) {
        const of = ownerColumn(owner);
        await inOrder(of, () => link.ask(statements.renew, [of, ids.map(toKey), Math.ceil(ttlMs)]));
      },
      async drop(owner, id) {
        const of = ownerColumn(owner);
        const [row] = await inOrder(of, () => link.ask(statements.drop, [of, toKey(id)]));
        return row?.dropped === true;
      },
    },
    sweep: () => sweepInSteps(link, statements.sweep),
  };
}

const statements = {
  keep: { name: 'owned_keep', text: 'SELECT keep_owned($1, $2, $3, $4, $5)' },
  // The size of a value is known without reading it.
  find: {
    name: 'owned_find',
    text: `SELECT CASE WHEN total <= $3 THEN value END AS value, total, of_others FROM (
SELECT asked.at, r.value, coalesce(sum(octet_length(r.value)) OVER (), 0)::bigint AS total,
r.key IS NULL AND EXISTS (
  SELECT FROM owned_records o WHERE o.key = asked.key AND o.owner <> $1 AND o.expires_at > now()
) AS of_others
FROM unnest($2::text[]) WITH ORDINALITY AS asked(key, at)
LEFT JOIN owned_records r ON r.owner = $1 AND r.key = asked.key AND r.expires_at > now()
) found ORDER BY at`,
  },
  renew: { name: 'owned_renew', text: 'SELECT renew_owned($1, $2, $3)' },
  drop: { name: 'owned_drop', text: 'SELECT drop_owned($1, $2) AS dropped' },
  sweep: { name: 'owned_sweep', text: 'SELECT generate_series(1, sweep_owned($1))' },
} as const;
