import type { ClientBase } from 'pg';

/** Most checks. More than one, since other clients of the pooler may have been given the connection meanwhile. */
const mostTries = 10;

/**
 * Refuses a pooler that gives each transaction a connection of its own. Behind such a pooler, the next statement may
 * run in another session, with another schema, other timeouts and prepared statements, and without `LISTEN`. Tables
 * could be created in the wrong schema.
 * @param client a new connection
 * @param connect opens another connection to the same place
 * @throws Error that says what to change
 */
export async function refuseSharedSessions(
  client: ClientBase,
  connect: () => Promise<ClientBase & { end(): Promise<void> }>,
): Promise<void> {
  const own = await backendOf(client);
  // A pooler reports a process id of its own, whereas a server reports that of the process that executes the
  // statements.
  if (own === Reflect.get(client, 'processID')) return;
  const other = await connect();
  try {
    for (let tries = 0; tries < mostTries; tries++) {
      // A pooler reuses the connection that was freed last, or the first of many.
      const before = await backendOf(client);
      await other.query('BEGIN');
      const isShared =
        before !== own || (await backendOf(other)) === own || (await backendOf(client)) !== own;
      await other.query('ROLLBACK');
      if (isShared) throw new Error(refusal);
    }
  } finally {
    await other.end();
  }
}

const refusal =
  'the pooler in front of PostgreSQL gives each transaction another connection: it has to keep one for each session ' +
  '(pool_mode = session with PgBouncer), or the URL of the store has to name the server itself';

async function backendOf(client: ClientBase): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return rows[0]?.pid;
}
