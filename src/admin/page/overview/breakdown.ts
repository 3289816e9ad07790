import type {
  Counts,
  KeyTrafficView,
  LatencyView,
  LiveState,
  ModelView,
  ProtocolView,
  TargetView,
} from '../../live-state.js';
import { createChoice } from '../choice.js';
import { h } from '../dom.js';
import { dollars, duration, nothing, percent, rate, whole } from '../format.js';
import { growth, type StateWindow, secondsOf, share } from '../rates.js';
import { type Column, createTable, type Table } from '../table.js';
import { failuresOf } from '../target.js';

/** A row of the newest state, and how fast it counts. */
interface Rated<Row> {
  readonly row: Row;
  /** Requests, or attempts of a target, of the last seconds. */
  readonly perSecond: number | null;
}

type Kind = 'model' | 'key' | 'target' | 'protocol';

interface Part {
  readonly element: HTMLElement;
  update(window: StateWindow): void;
}

const note = 'Counts since the start, rates of the last ten seconds';

/** Counts since the start by model, key, target or protocol, and rates of the last seconds. */
export function createBreakdown(): Part {
  const parts: Readonly<Record<Kind, Part>> = {
    model: part('model', ({ models }) => models, requestsOf, modelColumns),
    key: part('key', ({ keys }) => keys, requestsOf, countColumns<KeyTrafficView>('Key')),
    target: part(
      'target',
      ({ targets }) => targets,
      ({ attempts }) => attempts,
      targetColumns,
    ),
    protocol: part('protocol', ({ protocols }) => protocols, requestsOf, protocolColumns),
  };
  let last: StateWindow = [];
  let shown = parts.model;
  const choice = createChoice<Kind>(
    'Broken down by',
    [
      ['model', 'Models'],
      ['key', 'Keys'],
      ['target', 'Targets'],
      ['protocol', 'Protocols'],
    ],
    (kind) => {
      parts[kind].update(last);
      shown.element.replaceWith(parts[kind].element);
      shown = parts[kind];
    },
  );
  return {
    element: h(
      'div',
      { class: 'panel' },
      h(
        'div',
        { class: 'panel-head' },
        h('div', { class: 'row' }, h('h3', {}, 'Traffic'), h('p', { class: 'hint' }, note)),
        choice.element,
      ),
      shown.element,
    ),
    update(window) {
      last = window;
      shown.update(window);
    },
  };
}

function requestsOf({ requests }: Counts): number {
  return requests;
}

function part<Row extends { readonly name: string }>(
  kind: Kind,
  rowsOf: (state: LiveState) => readonly Row[],
  countOf: (row: Row) => number,
  columns: readonly Column<Rated<Row>>[],
): Part {
  const table: Table<Rated<Row>> = createTable({
    label: `Traffic by ${kind}`,
    columns,
    keyOf: ({ row }) => `${kind}:${row.name}`,
    order: { key: kind === 'target' ? 'attempts' : 'requests', descending: true },
    empty: 'Nothing has been counted yet.',
  });
  return {
    element: table.element,
    update(window) {
      const [first] = window;
      const last = window.at(-1);
      if (first === undefined || last === undefined) return;
      const seconds = secondsOf(window);
      const before = new Map(rowsOf(first).map((row) => [row.name, countOf(row)]));
      table.update(
        rowsOf(last).map((row) => ({
          row,
          perSecond: growth(before.get(row.name), countOf(row), seconds),
        })),
      );
    },
  };
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
    text: ({ row }) => {
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
    text: ({ perSecond }) => (perSecond === null ? nothing : rate(perSecond)),
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
