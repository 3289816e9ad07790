import { signal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import type { RecentRequestView } from '../../metrics/live-state.js';
import { Badge } from '../badge.js';
import { CopyButton } from '../copy.js';
import { duration, moment, nothing, whole } from '../format.js';
import { into } from '../into.js';
import { useKept, useSession } from '../session.js';
import { type Column, Table } from '../table.js';
import { filterRequests, toneOf } from './filter.js';

/** The last requests of all workers, newest first, without bodies, which the gateway does not keep. */
export function RequestsView() {
  const { state } = useSession();
  const { text, errorsOnly, held } = useKept('requests', () => ({
    text: signal(''),
    errorsOnly: signal(false),
    /** The requests at the time of the pause; null if not paused. */
    held: signal<readonly RecentRequestView[] | null>(null),
  }));
  const newest = state.value?.requests ?? [];
  const isPaused = held.value !== null;
  const all = held.value ?? newest;
  const rows = filterRequests(all, { text: text.value, errorsOnly: errorsOnly.value });
  return (
    <section>
      <div class="view-head">
        <h2>Requests</h2>
        <p class="hint" role="status">
          {summaryOf(rows.length, all.length, isPaused)}
        </p>
      </div>
      <div class="panel">
        <div class="row">
          <input
            type="search"
            class="filter"
            placeholder="id, model, key or path"
            aria-label="Filter"
            value={text}
            onInput={into(text)}
          />
          <label class="check">
            <input
              type="checkbox"
              checked={errorsOnly}
              onChange={({ currentTarget }) => {
                errorsOnly.value = currentTarget.checked;
              }}
            />
            Only errors
          </label>
          <button
            type="button"
            class="button"
            aria-pressed={isPaused}
            onClick={() => {
              held.value = isPaused ? null : newest;
            }}
          >
            Pause
          </button>
        </div>
        <Table
          label="Recent requests"
          columns={columns}
          rows={rows}
          keyOf={({ id }) => `request:${id}`}
          order={null}
          empty="No request to show."
        />
      </div>
    </section>
  );
}

function summaryOf(rows: number, all: number, isPaused: boolean): string {
  if (all === 0) return '';
  const counted = rows === all ? `The last ${all}` : `${rows} of the last ${all}`;
  return isPaused ? `${counted}, paused` : counted;
}

/** @param ms null if unknown */
function time(ms: number | null): string {
  return duration(ms === null ? null : ms / 1000);
}

function wordColumn(key: 'model' | 'key' | 'target', title: string): Column<RecentRequestView> {
  return {
    key,
    title,
    value: (row) => row[key],
    attributes: (row) => ({ title: row[key] ?? '' }),
    content: (row) => row[key] ?? nothing,
  };
}

const columns: readonly Column<RecentRequestView>[] = [
  { key: 'at', title: 'Time', value: ({ at }) => at, content: ({ at }) => moment(at) },
  {
    key: 'status',
    title: 'Status',
    value: ({ status }) => status,
    content(request) {
      const { status, outcome, error } = request;
      const said = error ?? (outcome === 'complete' ? '' : outcome);
      return <Badge tone={toneOf(request)}>{`${status} ${said.replaceAll('_', ' ')}`.trim()}</Badge>;
    },
  },
  wordColumn('model', 'Model'),
  wordColumn('key', 'Key'),
  {
    key: 'first-byte',
    title: 'First byte',
    isNumber: true,
    value: ({ firstByteMs }) => firstByteMs,
    content: ({ firstByteMs }) => time(firstByteMs),
  },
  {
    key: 'duration',
    title: 'Duration',
    isNumber: true,
    value: ({ durationMs }) => durationMs,
    content: ({ durationMs }) => time(durationMs),
  },
  {
    key: 'own',
    title: 'Own',
    hint: 'The gateway’s own share',
    isNumber: true,
    value: ({ ownMs }) => ownMs,
    content: ({ ownMs }) => time(ownMs),
  },
  {
    key: 'tokens-input',
    title: 'Tokens in',
    isNumber: true,
    value: ({ inputTokens }) => inputTokens,
    content: ({ inputTokens }) => (inputTokens === 0 ? nothing : whole(inputTokens)),
  },
  {
    key: 'tokens-output',
    title: 'out',
    isNumber: true,
    value: ({ outputTokens }) => outputTokens,
    content: ({ outputTokens }) => (outputTokens === 0 ? nothing : whole(outputTokens)),
  },
  {
    key: 'retries',
    title: 'Retries',
    isNumber: true,
    value: ({ retries }) => retries,
    content: ({ retries }) => (retries === 0 ? nothing : `${retries}`),
  },
  {
    key: 'path',
    title: 'Path',
    value: ({ method, path }) => `${method} ${path}`,
    attributes: ({ method, path, protocol }) => ({
      title: protocol === null ? `${method} ${path}` : `${method} ${path}, ${protocol}`,
    }),
    content: ({ method, path }) => (method === 'POST' ? path : `${method} ${path}`),
  },
  wordColumn('target', 'Target'),
  {
    key: 'left-out',
    title: 'Left out',
    hint: 'Members of the request, and of the answer, that their translation left out',
    value: leftOutOf,
    attributes: (request) => ({ title: leftOutOf(request) }),
    content: (request) => leftOutOf(request) || nothing,
  },
  {
    key: 'id',
    title: 'Id',
    value: ({ id }) => id,
    content: ({ id }) => <RequestId id={id} />,
  },
];

function leftOutOf({ leftOut, lostInAnswer }: RecentRequestView): string {
  const ofAnswer = lostInAnswer.length === 0 ? [] : [`answer: ${lostInAnswer.join(', ')}`];
  return [...leftOut, ...ofAnswer].join(', ');
}

function RequestId({ id }: { readonly id: string }) {
  const shown = useRef<HTMLElement>(null);
  return (
    <>
      <code ref={shown} title={id}>
        {id}
      </code>
      <CopyButton text={id} shownIn={shown} label={`Copy the id ${id}`} />
    </>
  );
}
