/**
 * Records of owners, with the number of bytes of each owner and of all. The latter is divided over several rows, so
 * that owners do not wait for each other. A transaction that has to remove records of other owners runs alone: two at
 * the same time could deadlock.
 */
export const ownedTables = `
CREATE TABLE owned_records (
  owner text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  value text NOT NULL,
  bytes bigint NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (owner, key)
);
CREATE INDEX owned_records_in_order ON owned_records (owner, expires_at, key);
CREATE INDEX owned_records_by_expiry ON owned_records (expires_at, owner, key);

CREATE TABLE owned_bytes (
  owner text COLLATE "C" PRIMARY KEY,
  bytes bigint NOT NULL
);

CREATE TABLE owned_totals (
  shard integer PRIMARY KEY,
  bytes bigint NOT NULL
);
INSERT INTO owned_totals SELECT shard, 0 FROM generate_series(0, 15) AS shard;

CREATE FUNCTION add_owned(of_owner text, change bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE owned_bytes SET bytes = bytes + change WHERE owner = of_owner;
  UPDATE owned_totals SET bytes = bytes + change WHERE shard = hashtext(of_owner) & 15;
END $$;

-- Keeps records, as [[key, value, bytes], ...], and removes the oldest that have to make room: so many at most, once
-- there is as much room as is needed for what came.
CREATE FUNCTION keep_owned(
  of_owner text, kept json, ttl_ms bigint, most_of_owner bigint, most_of_all bigint
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  came CONSTANT bigint := (SELECT coalesce(sum((k->>2)::bigint), 0) FROM json_array_elements(kept) k);
  gate CONSTANT bigint := 'owned_records'::regclass::oid::bigint;
  most_removed CONSTANT integer := 1000;
  most_freed CONSTANT bigint := 1048576;
  before bigint;
  own bigint;
  everything bigint;
  removed integer;
  freed bigint;
  oldest record;
BEGIN
  everything := (SELECT sum(bytes) FROM owned_totals);
  IF everything + came > most_of_all THEN PERFORM pg_advisory_xact_lock(gate);
  ELSE PERFORM pg_advisory_xact_lock_shared(gate);
  END IF;
  INSERT INTO owned_bytes AS b VALUES (of_owner, 0)
    ON CONFLICT (owner) DO UPDATE SET bytes = b.bytes RETURNING b.bytes INTO before;
  WITH gone AS (
    DELETE FROM owned_records r USING json_array_elements(kept) k
      WHERE r.owner = of_owner AND r.key = k->>0 RETURNING r.bytes
  )
  SELECT before - coalesce(sum(bytes), 0) INTO own FROM gone;

  removed := 0;
  freed := 0;
  IF own + came > most_of_owner THEN
    FOR oldest IN SELECT r.key, r.bytes FROM owned_records r WHERE r.owner = of_owner ORDER BY r.expires_at, r.key LOOP
      EXIT WHEN own + came <= most_of_owner
        OR (freed >= came AND (removed >= most_removed OR freed >= most_freed));
      DELETE FROM owned_records r WHERE r.owner = of_owner AND r.key = oldest.key;
      own := own - oldest.bytes;
      freed := freed + oldest.bytes;
      removed := removed + 1;
    END LOOP;
  END IF;
  PERFORM add_owned(of_owner, own - before);

  IF everything + came > most_of_all THEN
    everything := (SELECT sum(bytes) FROM owned_totals);
    removed := 0;
    freed := 0;
    FOR oldest IN SELECT r.owner, r.key, r.bytes FROM owned_records r ORDER BY r.expires_at, r.owner, r.key LOOP
      EXIT WHEN everything + came <= most_of_all
        OR (freed >= came AND (removed >= most_removed OR freed >= most_freed));
      DELETE FROM owned_records r WHERE r.owner = oldest.owner AND r.key = oldest.key;
      PERFORM add_owned(oldest.owner, -oldest.bytes);
      everything := everything - oldest.bytes;
      freed := freed + oldest.bytes;
      removed := removed + 1;
    END LOOP;
  END IF;

  INSERT INTO owned_records
    SELECT of_owner, k->>0, k->>1, (k->>2)::bigint, now() + milliseconds(ttl_ms) FROM json_array_elements(kept) k;
  PERFORM add_owned(of_owner, came);
END $$;

CREATE FUNCTION renew_owned(of_owner text, keys text[], ttl_ms bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared('owned_records'::regclass::oid::bigint);
  PERFORM 1 FROM owned_bytes b WHERE b.owner = of_owner FOR UPDATE;
  UPDATE owned_records r SET expires_at = now() + milliseconds(ttl_ms)
    WHERE r.owner = of_owner AND r.key = ANY (keys) AND r.expires_at > now()
      AND r.expires_at <= now() + milliseconds(ttl_ms / 2);
END $$;

CREATE FUNCTION drop_owned(of_owner text, of_key text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  gone record;
BEGIN
  PERFORM pg_advisory_xact_lock_shared('owned_records'::regclass::oid::bigint);
  PERFORM 1 FROM owned_bytes b WHERE b.owner = of_owner FOR UPDATE;
  DELETE FROM owned_records r WHERE r.owner = of_owner AND r.key = of_key RETURNING * INTO gone;
  IF NOT FOUND THEN RETURN false; END IF;
  PERFORM add_owned(of_owner, -gone.bytes);
  RETURN gone.expires_at > now();
END $$;

-- Removes so many records that have expired. Gives how many there were.
CREATE FUNCTION sweep_owned(most integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  swept bigint;
BEGIN
  PERFORM pg_advisory_xact_lock('owned_records'::regclass::oid::bigint);
  WITH gone AS (
    DELETE FROM owned_records r WHERE (r.owner, r.key) IN (
      SELECT e.owner, e.key FROM owned_records e WHERE e.expires_at <= now() ORDER BY e.expires_at LIMIT most
    ) RETURNING r.owner, r.bytes
  ), sums AS (
    SELECT owner, sum(bytes) AS bytes, count(*) AS count FROM gone GROUP BY owner
  )
  SELECT coalesce(sum(count), 0) INTO swept FROM sums, LATERAL (SELECT add_owned(owner, -bytes::bigint)) added;
  DELETE FROM owned_bytes WHERE bytes <= 0;
  RETURN swept;
END $$;
`;

/** Finds an id regardless of its owner. */
export const ownedByKey = 'CREATE INDEX owned_records_by_key ON owned_records (key, owner)';

/**
 * Records and claims. Claims need no write-ahead log, since a claim that is lost in a crash was for seconds. Listeners
 * are notified of changes of collections whose names end with `-changes`.
 */
export const recordTables = `
CREATE TABLE records (
  collection text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  id text NOT NULL,
  value text NOT NULL,
  revision bigint NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (collection, key)
);
CREATE INDEX records_in_order ON records (collection, expires_at, key);
CREATE INDEX records_by_expiry ON records (expires_at);

CREATE UNLOGGED TABLE claims (
  key text COLLATE "C" PRIMARY KEY,
  expires_at timestamptz NOT NULL
);

CREATE FUNCTION tell_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('model_gateway.' || TG_TABLE_SCHEMA, NEW.collection);
  RETURN NULL;
END $$;
CREATE TRIGGER tell_change AFTER INSERT OR UPDATE ON records
  FOR EACH ROW WHEN (NEW.collection LIKE '%-changes') EXECUTE FUNCTION tell_change();

-- What is reserved by an account, from its value; null for one that cannot be read.
CREATE FUNCTION budget_reserved(value text) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  reserved bigint;
BEGIN
  reserved := (value::jsonb->>'reserved')::bigint;
  RETURN CASE WHEN reserved BETWEEN 0 AND 9007199254740991 THEN reserved END;
EXCEPTION WHEN data_exception THEN
  RETURN NULL;
END $$;

CREATE VIEW budgets AS
  SELECT id AS budget, budget_reserved(value) AS reserved_nano_usd, expires_at
  FROM records WHERE collection = 'budgets' AND expires_at > now();
`;
