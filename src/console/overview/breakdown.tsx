import { signal } from '@preact/signals';
import type { VNode } from 'preact';
import type {
  Counts,
  KeyTrafficView,
  LatencyView,
  LiveState,
  ModelView,
  ProtocolView,
  TargetView,
} from '../../metrics/live-state.js';
import { Choice } from '../choice.js';
import { dollars, duration, nothing, percent, rate, whole } from '../format.js';
import { growth, secondsOf, share } from '../rates.js';
import { useKept, useSession } from '../session.js';
import { type Column, Table } from '../table.js';
import { failuresOf } from '../targets/target.js';

/** A row of the newest state, with its rate. */
interface Rated<Row> {
  readonly row: Row;
  /** Requests, or attempts at a target, per second over the last seconds. */
  readonly perSecond: number | null;
}

type Kind = 'model' | 'key' | 'target' | 'protocol';

const kinds: readonly (readonly [Kind, string])[] = [
  ['model', 'Models'],
  ['key', 'Keys'],
  ['target', 'Targets'],
  ['protocol', 'Protocols'],
];

const note = 'Counts since the start, rates of the last ten seconds';

/** Counts since the start by model, key, target or protocol, and rates of the last seconds. */
export function Breakdown() {
  const kind = useKept('breakdown', () => signal<Kind>('model'));
  return (
    <div class="panel">
      <div class="panel-head">
        <div class="row">
          <h3>Traffic</h3>
          <p class="hint">{note}</p>
        </div>
        <Choice label="Broken down by" names={kinds} chosen={kind} />
      </div>
      {tables[kind.value]()}
    </div>
  );
}

const tables: Readonly<Record<Kind, () => VNode>> = {
  model: () => traffic<ModelView>('model', ({ models }) => models, requestsOf, modelColumns),
  key: () => traffic<KeyTrafficView>('key', ({ keys }) => keys, requestsOf, keyColumns),
  target: () => traffic<TargetView>('target', ({ targets }) => targets, attemptsOf, targetColumns),
  protocol: () =>
    traffic<ProtocolView>('protocol', ({ protocols }) => protocols, requestsOf, protocolColumns),
};

function traffic<Row extends { readonly name: string }>(
  kind: Kind,
  rowsOf: (state: LiveState) => readonly Row[],
  countOf: (row: Row) => number,
  columns: readonly Column<Rated<Row>>[],
): VNode {
  return <Traffic<Row> key={kind} kind={kind} rowsOf={rowsOf} countOf={countOf} columns={columns} />;
}

function attemptsOf({ attempts }: TargetView): number {
  return attempts;
}

function requestsOf({ requests }: Counts): number {
  return requests;
}

interface TrafficProps<Row> {
  readonly kind: Kind;
  rowsOf(state: LiveState): readonly Row[];
  countOf(row: Row): number;
  readonly columns: readonly Column<Rated<Row>>[];
}

function Traffic<Row extends { readonly name: string }>({
  kind,
  rowsOf,
  countOf,
  columns,
}: TrafficProps<Row>) {
  const window = useSession().window.value;
  const [first] = window;
  const last = window.at(-1);
  const seconds = secondsOf(window);
  const before = new Map(first && rowsOf(first).map((row) => [row.name, countOf(row)]));
  const rows = (last === undefined ? [] : rowsOf(last)).map((row) => ({
    row,
    perSecond: growth(before.get(row.name), countOf(row), seconds),
  }));
  return (
    <Table
      label={`Traffic by ${kind}`}
      columns={columns}
      rows={rows}
      keyOf={({ row }) => `${kind}:${row.name}`}
      order={{ key: kind === 'target' ? 'attempts' : 'requests', descending: true }}
      empty="Nothing has been counted yet."
    />
  );
}

function numberColumn<Row>(
  key: string,
  title: string,
  value: (row: Row) => number | null,
  text: (value: number) => string,
  hint = '',
): Column<Rated<Row>> {
  return {
    key,
    title,
    hint,
    isNumber: true,
    value: ({ row }) => value(row),
    content: ({ row }) => {
      const number = value(row);
      return number === null ? nothing : text(number);
    },
  };
}

function nameColumn<Row extends { readonly name: string }>(title: string): Column<Rated<Row>> {
  return { key: 'name', title, value: ({ row }) => row.name };
}

function rateColumn<Row>(title: string): Column<Rated<Row>> {
  return {
    key: 'rate',
    title,
    isNumber: true,
    value: ({ perSecond }) => perSecond,
    content: ({ perSecond }) => (perSecond === null ? nothing : rate(perSecond)),
  };
}

function countColumns<Row extends Counts & { readonly name: string }>(
  title: string,
): readonly Column<Rated<Row>>[] {
  return [
    nameColumn(title),
    rateColumn('Now'),
    numberColumn('requests', 'Requests', ({ requests }) => requests, whole),
    numberColumn('errors', 'Errors', ({ errors }) => errors, whole),
    numberColumn('error-share', 'Error share', ({ errors, requests }) => share(errors, requests), percent),
    numberColumn('refusals', 'Refusals', ({ refusals }) => refusals, whole, 'Answered with 400 to 499'),
  ];
}

function latencyColumn<Row>(
  key: string,
  title: string,
  of: (row: Row) => LatencyView,
  percentile: keyof LatencyView,
): Column<Rated<Row>> {
  return numberColumn(
    `${key}-${percentile}`,
    `${title} ${percentile}`,
    (row) => of(row)[percentile],
    duration,
  );
}

const keyColumns = countColumns<KeyTrafficView>('Key');

const modelColumns: readonly Column<Rated<ModelView>>[] = [
  ...countColumns<ModelView>('Model'),
  numberColumn('tokens-input', 'Tokens in', ({ tokens }) => tokens.input, whole),
  numberColumn('tokens-output', 'Tokens out', ({ tokens }) => tokens.output, whole),
  numberColumn('cost', 'Cost', ({ costUsd }) => costUsd, dollars),
  latencyColumn('first-byte', 'First byte', ({ firstByte }) => firstByte, 'p50'),
  latencyColumn('first-byte', 'First byte', ({ firstByte }) => firstByte, 'p95'),
];

const protocolColumns: readonly Column<Rated<ProtocolView>>[] = [
  ...countColumns<ProtocolView>('Protocol'),
  latencyColumn('duration', 'Duration', (row) => row.duration, 'p50'),
  latencyColumn('duration', 'Duration', (row) => row.duration, 'p95'),
];

const targetColumns: readonly Column<Rated<TargetView>>[] = [
  nameColumn('Target'),
  rateColumn('Now'),
  numberColumn('attempts', 'Attempts', ({ attempts }) => attempts, whole),
  numberColumn('failures', 'Failures', failuresOf, whole),
  numberColumn('failure-share', 'Failure share', (row) => share(failuresOf(row), row.attempts), percent),
  numberColumn('retries', 'Retries', ({ retries }) => retries, whole),
  numberColumn('in-flight', 'In flight', ({ inFlight }) => inFlight, whole),
];
