/**
 * How hosts divide rate limits. The tables need no write-ahead log: after a crash, hosts state again what they have.
 * Without the log, the disk does not slow the server down.
 */
export const limitTables = `
CREATE UNLOGGED TABLE share_hosts (
  host text COLLATE "C" PRIMARY KEY,
  number bigint NOT NULL,
  deadline timestamptz NOT NULL
);

CREATE UNLOGGED TABLE share_pools (
  pool text COLLATE "C" PRIMARY KEY
) WITH (fillfactor = 50);

CREATE UNLOGGED TABLE shares (
  pool text COLLATE "C" NOT NULL,
  host text COLLATE "C" NOT NULL,
  units bigint NOT NULL,
  PRIMARY KEY (pool, host)
) WITH (fillfactor = 50);
CREATE INDEX shares_by_host ON shares (host);

CREATE UNLOGGED TABLE share_wishes (
  pool text COLLATE "C" NOT NULL,
  host text COLLATE "C" NOT NULL,
  until timestamptz NOT NULL,
  PRIMARY KEY (pool, host)
) WITH (fillfactor = 50);

-- Takes the statement of one host, its pools as [[pool, limit, held, need, least, want, block in milliseconds], ...].
-- Gives what was last seen of it, for each pool what was granted and what is left, and the pools of its shares that other
-- hosts want; or null, where a later statement came first. A share is gone when its host's deadline is past by the
-- time for which it is blocked. Whoever changes shares of a pool holds its row of share_pools, and the rows are taken in
-- their order, so that no two hosts wait for each other.
CREATE FUNCTION exchange_shares(by_host text, by_number bigint, lease_ms bigint, wish_ms bigint, stated json)
RETURNS json LANGUAGE plpgsql
-- A few rows of large tables are wanted each time, by their keys. Nothing is known of how many, so that plans that read
-- whole tables may seem cheaper.
SET enable_seqscan TO off SET enable_hashjoin TO off SET enable_mergejoin TO off SET enable_bitmapscan TO off
SET jit TO off SET plan_cache_mode TO force_generic_plan
AS $$
DECLARE
  seen bigint;
  alive bigint;
  heard jsonb;
  moment timestamptz;
  granted json;
BEGIN
  SELECT number INTO seen FROM share_hosts WHERE host = by_host FOR UPDATE;
  IF seen >= by_number THEN RETURN NULL; END IF;
  INSERT INTO share_hosts AS h VALUES (by_host, by_number, clock_timestamp() + milliseconds(lease_ms))
    ON CONFLICT (host) DO UPDATE SET number = excluded.number, deadline = excluded.deadline
    WHERE h.number < excluded.number;
  IF NOT FOUND THEN RETURN NULL; END IF;

  IF json_array_length(stated) > 0 THEN
    INSERT INTO share_pools
      SELECT p->>0 FROM json_array_elements(stated) p
      WHERE NOT EXISTS (SELECT 1 FROM share_pools k WHERE k.pool = p->>0) ORDER BY 1
      ON CONFLICT DO NOTHING;
    PERFORM 1 FROM share_pools
      WHERE pool = ANY (ARRAY(SELECT p->>0 FROM json_array_elements(stated) p)) ORDER BY pool FOR UPDATE;
    moment := clock_timestamp();
    -- Once for all pools: these rows change with each exchange, and as long as anybody reads in one long transaction,
    -- as pg_dump does, each of their versions is gone through to find one.
    SELECT jsonb_object_agg(h.host, extract(epoch FROM h.deadline)),
        count(*) FILTER (WHERE h.host <> by_host AND h.deadline > moment)
      INTO heard, alive FROM share_hosts h;
    WITH asked AS (
      SELECT p.at, p.of->>0 AS pool, (p.of->>1)::bigint AS units, (p.of->>2)::bigint AS held,
        (p.of->>3)::bigint AS need, (p.of->>4)::bigint AS least, (p.of->>5)::bigint AS want,
        (p.of->>6)::double precision AS block
      FROM json_array_elements(stated) WITH ORDINALITY AS p(of, at)
    ), standing AS (
      SELECT a.*, parts.known, parts.others, a.units - parts.others - a.held AS free
      FROM asked a, LATERAL (
        SELECT max(s.units) FILTER (WHERE s.host = by_host) AS known,
          coalesce(sum(s.units) FILTER (WHERE s.host <> by_host), 0)::bigint AS others
        FROM shares s WHERE s.pool = a.pool AND (s.host = by_host
          OR (heard->>s.host)::double precision > extract(epoch FROM moment)::double precision - a.block / 1000)
      ) parts
    ), decided AS (
      SELECT s.*, CASE WHEN s.need > 0 AND s.free >= s.least
        THEN least(s.free, greatest(s.need, least(s.want, s.free / (2 * (alive + 1))))) ELSE 0 END AS given
      FROM standing s
    ), dropped AS (
      DELETE FROM shares s WHERE s.host = by_host
        AND s.pool = ANY (ARRAY(SELECT pool FROM decided WHERE held + given = 0 AND known IS NOT NULL))
    ), written AS (
      INSERT INTO shares AS s
        SELECT pool, by_host, held + given FROM decided
        WHERE held + given > 0 AND held + given IS DISTINCT FROM known
        ON CONFLICT (pool, host) DO UPDATE SET units = excluded.units
    ), wished AS (
      INSERT INTO share_wishes AS w
        SELECT pool, by_host, moment + milliseconds(wish_ms) FROM decided
        WHERE (given < need OR free < 0) AND others > 0
        ON CONFLICT (pool, host) DO UPDATE SET until = excluded.until
    )
    SELECT json_agg(json_build_array(given, free - given) ORDER BY at) INTO granted FROM decided;
  END IF;

  RETURN json_build_object(
    'seen', coalesce(seen, 0),
    'pools', coalesce(granted, '[]'),
    'wanted', (
      SELECT coalesce(json_agg(wanted.pool), '[]') FROM (
        SELECT DISTINCT w.pool FROM share_wishes w JOIN shares s ON s.pool = w.pool AND s.host = by_host
        WHERE w.host <> by_host AND w.until > clock_timestamp() LIMIT 1000
      ) wanted
    )
  );
END $$;

-- Forgets hosts that were not heard of for ten minutes, longer than any share is blocked, and what only they had. The
-- lock comes first, so that nobody who has pools waits for what is removed here; a host that speaks again just now has
-- its row and waits for the lock, and stays.
CREATE FUNCTION sweep_shares() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  LOCK TABLE share_pools IN EXCLUSIVE MODE;
  DELETE FROM share_wishes WHERE until <= now();
  WITH gone AS (
    DELETE FROM share_hosts WHERE host IN (
      SELECT host FROM share_hosts WHERE deadline + interval '10 minutes' <= now() FOR UPDATE SKIP LOCKED
    ) RETURNING host
  )
  DELETE FROM shares s USING gone WHERE s.host = gone.host;
  DELETE FROM share_pools p WHERE NOT EXISTS (SELECT 1 FROM shares s WHERE s.pool = p.pool);
END $$;
`;

/** Changes of budgets, whose debts may be negative. The function of older stores does not accept that. */
export const budgetChanges = `
-- Takes what is asked of accounts of budgets, in the order of the accounts: for each its name, the budget in all, the
-- least that helps, what is wanted, what is owed, what is given back, how long the account is kept in milliseconds, and
-- the name of what is owed, by which it is taken once. Gives what was reserved of each, and null for an account that
-- cannot be read.
CREATE OR REPLACE FUNCTION change_budgets(asked json, first_revision bigint, most_debts integer)
RETURNS TABLE (at bigint, granted bigint) LANGUAGE plpgsql AS $$
DECLARE
  each record;
  held records%ROWTYPE;
  reserved bigint;
  debts jsonb;
  owed bigint;
  remaining bigint;
  most CONSTANT bigint := 9007199254740991;
BEGIN
  FOR each IN
    SELECT a.at, a.of->>0 AS key, a.of->>1 AS id, (a.of->>2)::bigint AS total, (a.of->>3)::bigint AS least,
      (a.of->>4)::bigint AS want, (a.of->>5)::bigint AS owed, (a.of->>6)::bigint AS back,
      a.of->>8 AS debt, now() + (a.of->>7)::double precision * interval '1 millisecond' AS until
    FROM json_array_elements(asked) WITH ORDINALITY AS a(of, at) ORDER BY (a.of->>0) COLLATE "C", a.at
  LOOP
    at := each.at;
    granted := 0;
    -- A sweep may remove one that has expired at any moment before it is locked.
    LOOP
      SELECT * INTO held FROM records r WHERE r.collection = 'budgets' AND r.key = each.key FOR UPDATE;
      EXIT WHEN FOUND;
      INSERT INTO records VALUES
        ('budgets', each.key, each.id, '{"version":1,"reserved":0}', first_revision, now())
        ON CONFLICT (collection, key) DO NOTHING;
    END LOOP;
    reserved := CASE WHEN held.expires_at > now() THEN budget_reserved(held.value) ELSE 0 END;
    IF reserved IS NULL THEN
      granted := NULL;
      RETURN NEXT;
      CONTINUE;
    END IF;
    owed := each.owed;
    debts := '[]';
    IF held.expires_at > now() AND jsonb_typeof(held.value::jsonb->'debts') = 'array' THEN
      debts := held.value::jsonb->'debts';
    END IF;
    IF debts ? each.debt THEN owed := 0; END IF;
    IF owed <> 0 AND each.debt IS NOT NULL THEN
      debts := debts || to_jsonb(each.debt);
      IF jsonb_array_length(debts) > most_debts THEN debts := debts - 0; END IF;
    END IF;
    remaining := each.total - reserved - owed;
    IF remaining >= each.least THEN granted := greatest(0, least(each.want, remaining)); END IF;
    IF granted + each.back > 0 OR owed <> 0 THEN
      reserved := least(most, greatest(0, reserved + owed + granted - each.back));
      UPDATE records r SET value = format('{"version":1,"reserved":%s,"debts":%s}', reserved, debts),
        revision = r.revision + 1, expires_at = each.until
        WHERE r.collection = 'budgets' AND r.key = each.key;
    END IF;
    RETURN NEXT;
  END LOOP;
END $$;
`;

/**
 * With the last statement of each process, the server can tell whether its tables are older than that process's last
 * answer: after a restore, or at a standby that lagged. In that case each account is set to the highest reservation
 * that any process knows of.
 */
export const budgetWriters = `
CREATE TABLE budget_writers (
  writer text COLLATE "C" PRIMARY KEY,
  number bigint NOT NULL,
  expires_at timestamptz NOT NULL
);

-- As change_budgets, for a process that was answered its statement number known. Gives what is reserved in all beside what
-- was granted, and where that statement is not known here nothing but a row at 0.
CREATE FUNCTION write_budgets(
  by_writer text, by_number bigint, known bigint, writer_ttl bigint, asked json, first_revision bigint, most_debts integer
) RETURNS TABLE (at bigint, granted bigint, reserved bigint) LANGUAGE plpgsql AS $$
DECLARE
  last bigint;
BEGIN
  SELECT w.number INTO last FROM budget_writers w WHERE w.writer = by_writer FOR UPDATE;
  IF known > coalesce(last, 0) THEN
    at := 0;
    RETURN NEXT;
    RETURN;
  END IF;
  INSERT INTO budget_writers AS w VALUES (by_writer, by_number, now() + milliseconds(writer_ttl))
    ON CONFLICT (writer) DO UPDATE
    SET number = greatest(w.number, excluded.number), expires_at = excluded.expires_at;
  FOR at, granted IN SELECT c.at, c.granted FROM change_budgets(asked, first_revision, most_debts) c LOOP
    SELECT budget_reserved(r.value) INTO reserved FROM records r
      WHERE r.collection = 'budgets' AND r.key = asked->(at - 1)::integer->>0;
    RETURN NEXT;
  END LOOP;
END $$;

-- Accounts as somebody knows them: key, id, what was reserved, how long they are kept in milliseconds. What is more here
-- stays, and so does what cannot be read.
CREATE FUNCTION restate_budgets(stated json, first_revision bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  each record;
BEGIN
  FOR each IN
    SELECT s->>0 AS key, s->>1 AS id, (s->>2)::bigint AS reserved,
      now() + milliseconds((s->>3)::double precision) AS until
    FROM json_array_elements(stated) s ORDER BY (s->>0) COLLATE "C"
  LOOP
    INSERT INTO records AS r VALUES
      ('budgets', each.key, each.id, format('{"version":1,"reserved":%s}', each.reserved), first_revision, each.until)
      ON CONFLICT (collection, key) DO UPDATE
      SET value = CASE WHEN r.expires_at <= now() THEN excluded.value
          ELSE (r.value::jsonb || jsonb_build_object('reserved', each.reserved))::text END,
        revision = r.revision + 1, expires_at = greatest(r.expires_at, excluded.expires_at)
      WHERE r.expires_at <= now() OR budget_reserved(r.value) < each.reserved;
  END LOOP;
END $$;
`;
