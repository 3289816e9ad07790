import { Counter, Histogram, Registry } from 'prom-client';
import { test } from 'tap';
import { histogramTexts, numberText } from '../../src/metrics/exposition.js';
import { fc } from '../support/seed.js';
import { parseText } from './parse-text.js';

const family = { name: 'a_total', help: 'Help.', type: 'counter', labels: ['model'] } as const;

const histogramText = (...family: Parameters<typeof histogramTexts>) =>
  [...histogramTexts(...family)].join('');

test('a family has its help, its type and its samples', async (t) => {
  t.equal(
    numberText({ ...family, labelValues: ['x', 'y'], values: [1, 2.5] }),
    '# HELP a_total Help.\n# TYPE a_total counter\na_total{model="x"} 1\na_total{model="y"} 2.5\n',
  );
  t.equal(
    numberText({ ...family, type: 'gauge', labels: [], labelValues: [], values: [7] }),
    '# HELP a_total Help.\n# TYPE a_total gauge\na_total 7\n',
  );
});

test('a histogram has cumulative buckets, a sum and a count', async (t) => {
  const text = histogramText({
    name: 'h_seconds',
    help: 'Help.',
    labels: ['model'],
    labelValues: ['x', 'y'],
    bounds: [0.00001, 1],
    counts: [1, 2, 3, 0, 0, 0],
    sums: [4.5, 0],
  });
  t.equal(
    text,
    [
      '# HELP h_seconds Help.',
      '# TYPE h_seconds histogram',
      'h_seconds_bucket{model="x",le="0.00001"} 1',
      'h_seconds_bucket{model="x",le="1"} 3',
      'h_seconds_bucket{model="x",le="+Inf"} 6',
      'h_seconds_sum{model="x"} 4.5',
      'h_seconds_count{model="x"} 6',
      'h_seconds_bucket{model="y",le="0.00001"} 0',
      'h_seconds_bucket{model="y",le="1"} 0',
      'h_seconds_bucket{model="y",le="+Inf"} 0',
      'h_seconds_sum{model="y"} 0',
      'h_seconds_count{model="y"} 0',
      '',
    ].join('\n'),
  );
});

test('prom-client writes the same of the same numbers', async (t) => {
  const registers = [new Registry()];
  const labelNames = ['model', 'key'];
  const labelValues = ['a "b"\\', 'line\nfeed', 'ü', ''];
  const counter = new Counter({ name: 'a_total', help: 'With \\ and\nmore.', labelNames, registers });
  counter.inc({ model: 'a "b"\\', key: 'line\nfeed' }, 3);
  counter.inc({ model: 'ü', key: '' }, 0.25);
  const bounds = [0.001, 0.5, 10];
  const histogram = new Histogram({
    name: 'b_seconds',
    help: 'B.',
    labelNames: ['model'],
    buckets: bounds,
    registers,
  });
  for (const seconds of [0.0005, 0.25, 0.25, 600]) histogram.observe({ model: 'x' }, seconds);
  const text =
    numberText({
      name: 'a_total',
      help: 'With \\ and\nmore.',
      type: 'counter',
      labels: labelNames,
      labelValues,
      values: [3, 0.25],
    }) +
    histogramText({
      name: 'b_seconds',
      help: 'B.',
      labels: ['model'],
      labelValues: ['x'],
      bounds,
      counts: [1, 2, 0, 1],
      sums: [600.5005],
    });
  const lines = (all: string) => all.split('\n').filter((line) => line !== '');
  // It writes `le` first, and the order of labels means nothing.
  const leLast = (line: string) => line.replace(/\{(le="[^"]*"),(.*)\}/, '{$2,$1}');
  t.same(lines(text), lines((await registers[0]?.metrics()) ?? '').map(leLast));
});

test('backslashes, quotes and line feeds are escaped where they must be', async (t) => {
  const text = numberText({ ...family, help: 'a\\b"c\nd', labelValues: ['a\\b"c\nd'], values: [1] });
  t.equal(text, '# HELP a_total a\\\\b"c\\nd\n# TYPE a_total counter\na_total{model="a\\\\b\\"c\\nd"} 1\n');
});

test('whatever the labels and numbers are, they are read as they were', async (t) => {
  const text = fc.oneof(fc.string({ unit: 'grapheme' }), fc.stringMatching(/^[\\"\n n{},=]*$/));
  const rows = fc.uniqueArray(fc.tuple(fc.tuple(text, text), fc.double()), {
    selector: ([labels]) => JSON.stringify(labels),
  });
  fc.assert(
    fc.property(text, rows, (help, all) => {
      const written = numberText({
        name: 'a',
        help,
        type: 'gauge',
        labels: ['model', 'key'],
        labelValues: all.flatMap(([labels]) => labels),
        values: all.map(([, value]) => value),
      });
      const parsed = parseText(written).get('a');
      t.equal(parsed?.help, help);
      t.same(
        parsed?.samples,
        all.map(([[model, key], value]) => ({ name: 'a', labels: { model, key }, value: value + 0 })),
      );
    }),
  );
});

test('names that are none of the format, and rows of another form, are refused', async (t) => {
  const values = { labelValues: ['x'], values: [1] };
  for (const name of ['', '1a', 'a b', 'a-b', 'é'])
    t.throws(() => numberText({ ...family, ...values, name }), TypeError);
  for (const label of ['', '1a', 'a:b', '__a']) {
    t.throws(() => numberText({ ...family, ...values, labels: [label] }), TypeError);
  }
  t.throws(() => numberText({ ...family, labelValues: [], values: [1] }), TypeError);
  const histogram = { name: 'h', help: '', bounds: [1], labelValues: ['x'], sums: [1] };
  t.throws(() => histogramText({ ...histogram, labels: ['model'], counts: [1] }), TypeError);
  t.throws(() => histogramText({ ...histogram, labels: ['le'], counts: [1, 1] }), TypeError);
});

test('the parser of these tests is strict', async (t) => {
  const head = '# HELP a x\n# TYPE a gauge\n';
  const histogram = '# HELP h x\n# TYPE h histogram\n';
  for (const wrong of [
    'a 1\n',
    `${head}a 1`,
    `${head}a\n`,
    `${head}a  1\n`,
    `${head}a 0x1\n`,
    `${head}a{} 1\n`,
    `${head}a{b="c",} 1\n`,
    `${head}a{b="c\\d"} 1\n`,
    `${head}a{b="c"} 1\na{b="c"} 2\n`,
    `${head}b 1\n`,
    `${head}a 1\n${head}a 1\n`,
    '# HELP a x\n# TYPE b gauge\na 1\n',
    '# HELP a x\n# TYPE a counter\na -1\n',
    `${histogram}h_bucket{le="1"} 1\n`,
    `${histogram}h_bucket{le="1"} 2\nh_bucket{le="+Inf"} 1\nh_sum 1\nh_count 1\n`,
    `${histogram}h_bucket{le="+Inf"} 1\nh_sum 1\nh_count 2\n`,
    `${histogram}h_bucket{le="+Inf"} 1\nh_count 1\n`,
  ]) {
    t.throws(() => parseText(wrong), wrong);
  }
});
