/**
 * Ledgers: lines by day, and sums with the changes that are to be added to them. A batch only inserts rows, so that
 * writers never wait for each other at a sum that all of them change. Merging adds up the changes of many batches.
 */
export const ledgerTables = `
CREATE TABLE ledgers (
  ledger text COLLATE "C" PRIMARY KEY,
  line_ttl_ms bigint NOT NULL
);

CREATE TABLE ledger_writers (
  ledger text COLLATE "C" NOT NULL,
  writer text COLLATE "C" NOT NULL,
  batch bigint NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (ledger, writer)
);

CREATE TABLE ledger_lines (
  ledger text COLLATE "C" NOT NULL,
  at timestamptz NOT NULL,
  writer text COLLATE "C" NOT NULL,
  batch bigint NOT NULL,
  place integer NOT NULL,
  value text NOT NULL,
  PRIMARY KEY (ledger, at, writer, batch, place)
) PARTITION BY RANGE (at);

CREATE TABLE ledger_sums (
  ledger text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  amounts jsonb NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (ledger, id)
);
CREATE INDEX ledger_sums_by_expiry ON ledger_sums (expires_at);

CREATE TABLE ledger_sum_changes (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  ledger text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  amounts jsonb NOT NULL,
  expires_at timestamptz NOT NULL
);

CREATE FUNCTION milliseconds(count double precision) RETURNS interval LANGUAGE sql IMMUTABLE
  AS 'SELECT count * interval ''1 millisecond''';

-- Lines of a ledger that are not later than this are kept no longer. (No interval is longer than three thousand years.)
CREATE FUNCTION last_gone(of_ledger text) RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT coalesce(
    (SELECT now() - milliseconds(least(line_ttl_ms, 100000000000000)) FROM ledgers WHERE ledger = of_ledger),
    '-infinity')
$$;

-- A table that is attached, in place of one that is made as a part, waits for no reader: an export, or a backup with
-- pg_dump, reads all night.
CREATE FUNCTION make_day(day timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  part CONSTANT text := 'ledger_lines_' || to_char(day, 'YYYYMMDD');
BEGIN
  IF to_regclass(part) IS NOT NULL THEN RETURN; END IF;
  PERFORM pg_advisory_xact_lock('ledger_lines'::regclass::oid::bigint);
  IF to_regclass(part) IS NOT NULL THEN RETURN; END IF;
  EXECUTE format('CREATE TABLE %I (LIKE ledger_lines INCLUDING ALL)', part);
  EXECUTE format('ALTER TABLE ledger_lines ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
    part, day, day + interval '1 day');
END $$;

-- Takes a batch: lines as [[milliseconds, value], ...], sums as [[id, amounts], ...]. Gives how many sums are to be
-- changed since the ledger's first batch, and null for a batch that was taken before.
CREATE FUNCTION append_batch(
  of_ledger text, by_writer text, number bigint, line_ttl bigint, writer_ttl bigint, lines json, sums json, sum_ttl bigint
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  last bigint;
BEGIN
  INSERT INTO ledger_writers AS w VALUES (of_ledger, by_writer, number, now() + milliseconds(writer_ttl))
    ON CONFLICT (ledger, writer) DO UPDATE SET batch = excluded.batch, expires_at = excluded.expires_at
    WHERE w.batch < excluded.batch OR w.expires_at <= now();
  IF NOT FOUND THEN RETURN NULL; END IF;
  PERFORM 1 FROM ledgers l WHERE l.ledger = of_ledger AND l.line_ttl_ms = line_ttl;
  IF NOT FOUND THEN
    INSERT INTO ledgers VALUES (of_ledger, line_ttl)
      ON CONFLICT (ledger) DO UPDATE SET line_ttl_ms = excluded.line_ttl_ms;
  END IF;
  PERFORM make_day(days.day) FROM (
    SELECT DISTINCT date_trunc('day', timestamptz 'epoch' + milliseconds((l->>0)::double precision)) AS day
    FROM json_array_elements(lines) l
  ) days;
  INSERT INTO ledger_lines
    SELECT of_ledger, timestamptz 'epoch' + milliseconds((l.line->>0)::double precision), by_writer, number, l.place, l.line->>1
    FROM json_array_elements(lines) WITH ORDINALITY AS l(line, place);
  WITH added AS (
    INSERT INTO ledger_sum_changes AS c (ledger, id, amounts, expires_at)
      SELECT of_ledger, s->>0, (s->1)::jsonb, now() + milliseconds(sum_ttl) FROM json_array_elements(sums) s
      RETURNING c.number
  )
  SELECT max(added.number) INTO last FROM added;
  RETURN coalesce(last, 0);
END $$;

-- Adds to the sums of a ledger what so many changes say, the oldest first. Gives how many there were; none while
-- somebody else is at it, for whom no connection waits.
CREATE FUNCTION merge_sums(of_ledger text, most integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  merged bigint;
BEGIN
  IF NOT pg_try_advisory_xact_lock('ledger_sums'::regclass::oid::bigint) THEN RETURN 0; END IF;
  WITH taken AS (
    DELETE FROM ledger_sum_changes WHERE number IN (
      SELECT c.number FROM ledger_sum_changes c WHERE c.ledger = of_ledger ORDER BY c.number LIMIT most
    ) RETURNING id, amounts, expires_at
  ), changed AS (
    SELECT id, max(expires_at) AS expires_at FROM taken GROUP BY id
  ), pairs AS (
    SELECT t.id, a.key, a.value::numeric AS amount FROM taken t, jsonb_each_text(t.amounts) a
    UNION ALL
    SELECT s.id, a.key, a.value::numeric FROM changed c
      JOIN ledger_sums s ON s.ledger = of_ledger AND s.id = c.id AND s.expires_at > now(),
      jsonb_each_text(s.amounts) a
  ), totals AS (
    SELECT id, key, greatest(-9007199254740991, least(9007199254740991, sum(amount))) AS total
    FROM pairs GROUP BY id, key
  ), merging AS (
    INSERT INTO ledger_sums AS s
      SELECT of_ledger, c.id, jsonb_object_agg(t.key, t.total), c.expires_at
      FROM changed c JOIN totals t ON t.id = c.id GROUP BY c.id, c.expires_at
      ON CONFLICT (ledger, id) DO UPDATE
        SET amounts = excluded.amounts, expires_at = greatest(s.expires_at, excluded.expires_at)
  )
  SELECT count(*) INTO merged FROM taken;
  RETURN merged;
END $$;

-- Removes lines that are kept no longer: days that no ledger keeps as a whole, what else has expired line by line.
-- A day that somebody is reading is left for the next time; whoever appends waits meanwhile, so it is not for long.
CREATE FUNCTION sweep_lines() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  least CONSTANT timestamptz := (SELECT min(last_gone(ledger)) FROM ledgers);
  part record;
  of record;
BEGIN
  IF least IS NULL THEN RETURN; END IF;
  FOR of IN SELECT ledger, last_gone(ledger) AS gone FROM ledgers LOOP
    IF of.gone > least THEN DELETE FROM ledger_lines WHERE ledger = of.ledger AND at <= of.gone; END IF;
  END LOOP;
  PERFORM set_config('lock_timeout', '100ms', true);
  FOR part IN
    SELECT c.oid::regclass AS name, substring(pg_get_expr(c.relpartbound, c.oid) from 'TO \\(''([^'']+)''')::timestamptz AS ends
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'ledger_lines'::regclass
    ORDER BY c.relname
  LOOP
    CONTINUE WHEN part.ends > least;
    BEGIN
      EXECUTE format('DROP TABLE %s', part.name);
    EXCEPTION WHEN lock_not_available THEN
      RETURN;
    END;
  END LOOP;
END $$;

-- What calls amount to: by ledger, sum and name.
CREATE VIEW ledger_totals AS
  SELECT ledger, id, key AS name, sum(value::numeric) AS total FROM (
    SELECT ledger, id, amounts FROM ledger_sums WHERE expires_at > now()
    UNION ALL
    SELECT ledger, id, amounts FROM ledger_sum_changes WHERE expires_at > now()
  ) rows, jsonb_each_text(amounts) GROUP BY ledger, id, key;
`;

/** Finds the changes of one key's sums without reading those of all others. */
export const sumChangesById = `
CREATE INDEX ledger_sum_changes_by_id ON ledger_sum_changes (ledger, id);
`;
