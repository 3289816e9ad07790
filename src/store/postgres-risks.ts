import { numberOf, type PostgresLink, textOf } from './postgres-link.js';

/** A standby that is so far behind would lose more than moments. */
const mostLagSeconds = 10;

/**
 * Reads the settings of a server by which a crash, or a change to a standby, would lose more than its log has lost.
 * https://www.postgresql.org/docs/current/runtime-config-wal.html
 * @returns a sentence for each, without a full stop
 */
export async function readRisks(link: PostgresLink): Promise<readonly string[]> {
  const [row] = await link.ask(statement, []);
  if (row === undefined) return [];
  const risks: string[] = [];
  for (const name of ['fsync', 'full_page_writes'] as const) {
    if (textOf(row[name]) === 'off')
      risks.push(`${name} is off: a crash of the machine may damage the whole database`);
  }
  if (textOf(row.synchronous_commit) === 'off') {
    risks.push(
      'synchronous_commit is off: a crash loses changes of the last moments that were told to be kept',
    );
  }
  if (row.is_standby === true) risks.push('the server is a standby, which takes no changes');
  const lag = row.lag_seconds === null ? 0 : numberOf(row.lag_seconds);
  if (lag > mostLagSeconds) {
    risks.push(`a standby is ${lag} s behind: a change to it loses what was written in that time`);
  }
  return risks;
}

const statement = {
  name: 'risks',
  text: `SELECT current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes,
current_setting('synchronous_commit') AS synchronous_commit, pg_is_in_recovery() AS is_standby,
(SELECT ceil(extract(epoch FROM max(replay_lag)))::bigint FROM pg_stat_replication) AS lag_seconds`,
} as const;
