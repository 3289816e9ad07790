/**
 * Records and claims. Claims need no log of the server's: one that goes with a crash was for seconds. Changes of a
 * collection whose name ends with `-changes` are told to whoever listens.
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

-- Takes what is asked of accounts of budgets, in the order of the accounts: for each its name, the budget in all, the
-- least that helps, what is wanted, what is owed, what is given back, how long the account is kept in milliseconds, and
-- the name of what is owed, by which it is taken once. Gives what was reserved of each, and null for an account that
-- cannot be read.
CREATE FUNCTION change_budgets(asked json, first_revision bigint, most_debts integer)
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
    IF owed > 0 AND each.debt IS NOT NULL THEN
      debts := debts || to_jsonb(each.debt);
      IF jsonb_array_length(debts) > most_debts THEN debts := debts - 0; END IF;
    END IF;
    remaining := each.total - reserved - owed;
    IF remaining >= each.least THEN granted := greatest(0, least(each.want, remaining)); END IF;
    IF granted + owed + each.back > 0 THEN
      reserved := least(most, greatest(0, reserved + owed + granted - each.back));
      UPDATE records r SET value = format('{"version":1,"reserved":%s,"debts":%s}', reserved, debts),
        revision = r.revision + 1, expires_at = each.until
        WHERE r.collection = 'budgets' AND r.key = each.key;
    END IF;
    RETURN NEXT;
  END LOOP;
END $$;

CREATE VIEW budgets AS
  SELECT id AS budget, budget_reserved(value) AS reserved_nano_usd, expires_at
  FROM records WHERE collection = 'budgets' AND expires_at > now();
`;
