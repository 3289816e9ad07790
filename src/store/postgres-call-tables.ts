/**
 * Columns of the table of calls for which writers of rows provide values, in the order of the rows. A time is text that
 * SQL can parse. `key_groups` is an SQL array.
 */
export const callColumns = [
  'at',
  'request_id',
  'key_id',
  'key_groups',
  'protocol',
  'model',
  'target',
  'status',
  'outcome',
  'tokens_known',
  'geo',
  'tier',
  'input_tokens',
  'output_tokens',
  'cached_tokens',
  'cache_written_tokens',
  'reasoning_tokens',
  'audio_input_tokens',
  'audio_output_tokens',
  'image_input_tokens',
  'image_output_tokens',
  'cached_audio_tokens',
  'cached_image_tokens',
  'cache_written_hour_tokens',
  'video_input_tokens',
  'characters',
  'searches',
  'bytes_in',
  'bytes_out',
  'media_seconds',
  'duration_ms',
  'first_byte_ms',
  'retries',
  'units',
  'cost_nano_usd',
  'paid_nano_usd',
] as const;

/** The ledger of the calls. Its retention applies to them. */
export const callLedger = 'usage';

/**
 * Calls as single rows, by day. Rows are only ever inserted, by `COPY` in the transaction of their batch, and removed
 * with the table of their day. A host of the version before continues with `append_batch` on its existing connections;
 * it opens no new ones.
 */
export const callTables = `
CREATE SEQUENCE calls_place CACHE 1000;

CREATE TABLE calls (
  at timestamptz NOT NULL,
  request_id text COLLATE "C" NOT NULL,
  key_id text COLLATE "C",
  key_groups text[] NOT NULL,
  protocol text,
  model text COLLATE "C",
  target text,
  status integer NOT NULL,
  outcome text NOT NULL,
  tokens_known text NOT NULL,
  tier text NOT NULL,
  input_tokens bigint NOT NULL,
  output_tokens bigint NOT NULL,
  cached_tokens bigint NOT NULL,
  cache_written_tokens bigint NOT NULL,
  reasoning_tokens bigint NOT NULL,
  audio_input_tokens bigint NOT NULL,
  audio_output_tokens bigint NOT NULL,
  image_input_tokens bigint NOT NULL,
  image_output_tokens bigint NOT NULL,
  cached_audio_tokens bigint NOT NULL,
  cached_image_tokens bigint NOT NULL,
  cache_written_hour_tokens bigint NOT NULL,
  searches bigint NOT NULL,
  bytes_in bigint NOT NULL,
  bytes_out bigint NOT NULL,
  media_seconds double precision NOT NULL,
  duration_ms double precision NOT NULL,
  first_byte_ms double precision,
  retries integer NOT NULL,
  units bigint NOT NULL,
  cost_nano_usd bigint NOT NULL,
  paid_nano_usd bigint,
  place bigint NOT NULL DEFAULT nextval('calls_place')
) PARTITION BY RANGE (at);
CREATE INDEX calls_in_order ON calls (at, place);
CREATE INDEX calls_by_key ON calls (key_id, at, place);
CREATE INDEX calls_by_request ON calls (request_id);

-- As make_day, for another table.
CREATE FUNCTION make_day_of(parent text, day timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  part CONSTANT text := parent || '_' || to_char(day, 'YYYYMMDD');
BEGIN
  IF to_regclass(part) IS NOT NULL THEN RETURN; END IF;
  PERFORM pg_advisory_xact_lock(parent::regclass::oid::bigint);
  IF to_regclass(part) IS NOT NULL THEN RETURN; END IF;
  EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', part, parent);
  EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
    parent, part, day, day + interval '1 day');
END $$;

-- As append_batch, and makes room for the calls of some days, which follow in the same transaction.
CREATE FUNCTION take_batch(
  of_ledger text, by_writer text, number bigint, line_ttl bigint, writer_ttl bigint, lines json, sums json,
  sum_ttl bigint, call_days json
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  last CONSTANT bigint := append_batch(
    of_ledger, by_writer, number, line_ttl, writer_ttl, lines, sums, sum_ttl);
BEGIN
  IF last IS NOT NULL THEN
    PERFORM make_day_of('calls', days.day) FROM (
      SELECT DISTINCT date_trunc('day', timestamptz 'epoch' + milliseconds(d::double precision)) AS day
      FROM json_array_elements_text(call_days) d
    ) days;
  END IF;
  RETURN last;
END $$;

-- Drops the tables of days that are over by then. One that somebody is reading is left for the next time.
CREATE FUNCTION drop_days(parent regclass, until timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  part record;
BEGIN
  PERFORM set_config('lock_timeout', '100ms', true);
  FOR part IN
    SELECT c.oid::regclass AS name, substring(pg_get_expr(c.relpartbound, c.oid) from 'TO \\(''([^'']+)''')::timestamptz AS ends
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = parent
    ORDER BY c.relname
  LOOP
    CONTINUE WHEN part.ends > until;
    BEGIN
      EXECUTE format('DROP TABLE %s', part.name);
    EXCEPTION WHEN lock_not_available THEN
      RETURN;
    END;
  END LOOP;
END $$;
`;

/** Adds what calls have since the second version of the table. */
export const callPlaces = withColumns('video_input_tokens bigint NOT NULL DEFAULT 0', 'geo text');

/** Adds what calls have since the third version. */
export const callCharacters = withColumns('characters bigint NOT NULL DEFAULT 0');

/**
 * Adds columns to the table of calls. Hosts of the version before continue with `COPY` of the columns that they know. While
 * the change waited for a long reader of the table, all writers would wait behind it: so it waits briefly, many times, and
 * gives up in the end.
 */
function withColumns(...columns: readonly string[]): string {
  return `
DO $$
DECLARE
  earlier CONSTANT text := current_setting('lock_timeout');
BEGIN
  PERFORM set_config('lock_timeout', '200ms', true);
  FOR attempt IN 1..60 LOOP
    BEGIN
      ALTER TABLE calls
        ${columns.map((column) => `ADD COLUMN ${column}`).join(',\n        ')};
      PERFORM set_config('lock_timeout', earlier, true);
      RETURN;
    EXCEPTION WHEN lock_not_available THEN
      PERFORM pg_sleep(0.3);
    END;
  END LOOP;
  RAISE lock_not_available USING
    MESSAGE = 'the table of calls cannot be brought up to date, since others have been reading it for half a minute: end their transactions (pg_stat_activity), or wait for them';
END $$;
`;
}
