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
