import type { ClientBase } from 'pg';

/** Other users of a pooler may have been given the connection in question meanwhile. */
const mostTries = 10;

/**
 * Refuses a pooler that gives each transaction a connection of its own. Behind one the schema of a session, its bounds of
 * time, its prepared statements and `LISTEN` are another one's by the next statement: tables might be made where they do not
 * belong.
 * @param client a new connection
 * @param connect makes another one to the same place
 * @throws Error that says what is to be changed
 */
export async function refuseSharedSessions(
  client: ClientBase,
  connect: () => Promise<ClientBase & { end(): Promise<void> }>,
): Promise<void> {
  const own = await backendOf(client);
  // A pooler tells a process of its own making, and a server the one that carries out the statements.
  if (own === Reflect.get(client, 'processID')) return;
  const other = await connect();
  try {
    for (let tries = 0; tries < mostTries; tries++) {
      // The last one that has become free is the next one that is used, or else the first one of many.
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
