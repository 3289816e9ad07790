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
