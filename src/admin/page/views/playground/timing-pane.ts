import { fill, h } from '../../dom.js';
import { duration, nothing, whole } from '../../format.js';
import type { RecordPane } from './events-pane.js';
import { type CallRecord, tokensPerSecond } from './record.js';
import { parseServerTiming, stretches, type TimedStep } from './server-timing.js';

/** What the steps of the gateway are. */
const meanings: Readonly<Record<string, string>> = {
  auth: 'the key is checked',
  parse: 'the body is read and validated',
  queue: 'waits for a connection to the upstream',
  upstream: 'the upstream’s first byte',
  other: 'the rest of the gateway’s own share',
  'first byte': 'from Send to the head of the answer',
  'first text': 'from there to the first piece of text',
  rest: 'to the end of the answer',
};

/** How long a call took: what the gateway says, and what this page has measured. */
export function createTimingPane(): RecordPane {
  const empty = h('p', { class: 'empty' }, 'The timings of the last call are shown here.');
  const content = h('div', { class: 'timings' });
  return {
    element: h('div', { class: 'pane' }, empty, content),
    update(record) {
      empty.hidden = record.status !== null;
      if (record.status !== null) fill(content, [numbersOf(record), gatewayOf(record), measuredOf(record)]);
    },
  };
}

function numbersOf(record: CallRecord): Node {
  const { firstByteMs, firstTextMs, totalMs, tokens } = record;
  const speed = tokensPerSecond(record);
  const time = (ms: number | null): string => duration(ms === null ? null : ms / 1000);
  const number = (value: number | undefined): string => (value === undefined ? nothing : whole(value));
  const stats: readonly (readonly [string, string])[] = [
    ['First byte', time(firstByteMs)],
    ['First text', time(firstTextMs)],
    ['Total', time(totalMs)],
    ['Tokens per second', speed === null ? nothing : speed.toFixed(1)],
    ['Input tokens', number(tokens?.input)],
    ['of them cached', number(tokens?.cached)],
    ['Output tokens', number(tokens?.output)],
    ['of them reasoning', number(tokens?.reasoning)],
  ];
  return h(
    'div',
    { class: 'numbers' },
    ...stats.map(([name, value]) => h('div', { class: 'stat' }, h('span', {}, name), h('span', {}, value))),
  );
}

function gatewayOf({ headers }: CallRecord): Node {
  const steps = parseServerTiming(headers['server-timing'] ?? '');
  const own = steps.find(({ name }) => name === 'own');
  const parts = stretches(steps);
  if (parts.length === 0) return h('p', { class: 'hint' }, 'The answer has no Server-Timing header.');
  const note =
    own === undefined ? '' : `The gateway’s own share until its answer began: ${duration(own.ms / 1000)}.`;
  return h(
    'section',
    { class: 'timing' },
    h('h3', {}, 'Server-Timing, as the gateway says'),
    ...barOf('Server-Timing', parts),
    h('p', { class: 'hint' }, note),
  );
}

function measuredOf({ firstByteMs, firstTextMs, totalMs }: CallRecord): Node {
  const toByte = firstByteMs ?? 0;
  const toText = firstTextMs === null ? 0 : Math.max(0, firstTextMs - toByte);
  const rest = totalMs === null ? 0 : Math.max(0, totalMs - toByte - toText);
  const parts = [
    { name: 'first byte', ms: toByte },
    ...(firstTextMs === null ? [] : [{ name: 'first text', ms: toText }]),
    ...(totalMs === null ? [] : [{ name: 'rest', ms: rest }]),
  ];
  return h(
    'section',
    { class: 'timing' },
    h('h3', {}, 'Measured by this page'),
    ...barOf('Measured', parts),
    h('p', { class: 'hint' }, 'With the way through the admin listener, which relays what the page sends.'),
  );
}

/** A bar of the steps in proportion, and its legend. */
function barOf(label: string, steps: readonly TimedStep[]): Node[] {
  const bar = h('div', {
    class: 'bar-of-steps',
    attributes: { role: 'img', 'aria-label': textOf(label, steps) },
  });
  const legend = h('ul', { class: 'step-legend' });
  steps.forEach(({ name, ms }, index) => {
    const series = `${index + 1}`;
    const stretch = h('span', { data: { series }, title: `${name}: ${duration(ms / 1000)}` });
    stretch.style.flexGrow = `${ms}`;
    bar.append(stretch);
    legend.append(
      h(
        'li',
        { class: 'step' },
        h('i', { data: { series } }),
        h('span', {}, name),
        h('b', {}, duration(ms / 1000)),
        h('span', { class: 'hint' }, meanings[name] ?? ''),
      ),
    );
  });
  return [bar, legend];
}

function textOf(label: string, steps: readonly TimedStep[]): string {
  return `${label}: ${steps.map(({ name, ms }) => `${name} ${duration(ms / 1000)}`).join(', ')}`;
}
