import { duration, nothing, whole } from '../format.js';
import { type CallRecord, tokensPerSecond } from './record.js';
import { parseServerTiming, stretches, type TimedStep } from './server-timing.js';

/** Descriptions of the gateway's steps. */
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

interface OfRecord {
  readonly record: CallRecord;
}

/** The timings of a call: as reported by the gateway, and as measured by this page. */
export function TimingPane({ record }: OfRecord) {
  if (record.status === null) return <p class="empty">The timings of the last call are shown here.</p>;
  return (
    <div class="timings">
      <Numbers record={record} />
      <OfGateway record={record} />
      <Measured record={record} />
    </div>
  );
}

function Numbers({ record }: OfRecord) {
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
  return (
    <div class="numbers">
      {stats.map(([name, value]) => (
        <div key={name} class="stat">
          <span>{name}</span>
          <span>{value}</span>
        </div>
      ))}
    </div>
  );
}

function OfGateway({ record: { headers } }: OfRecord) {
  const steps = parseServerTiming(headers['server-timing'] ?? '');
  const own = steps.find(({ name }) => name === 'own');
  const parts = stretches(steps);
  if (parts.length === 0) return <p class="hint">The answer has no Server-Timing header.</p>;
  return (
    <section class="timing">
      <h3>Server-Timing, as the gateway says</h3>
      <Steps label="Server-Timing" steps={parts} />
      <p class="hint">
        {own !== undefined && `The gateway’s own share until its answer began: ${duration(own.ms / 1000)}.`}
      </p>
    </section>
  );
}

function Measured({ record: { firstByteMs, firstTextMs, totalMs } }: OfRecord) {
  const toByte = firstByteMs ?? 0;
  const toText = firstTextMs === null ? 0 : Math.max(0, firstTextMs - toByte);
  const rest = totalMs === null ? 0 : Math.max(0, totalMs - toByte - toText);
  const steps = [
    { name: 'first byte', ms: toByte },
    ...(firstTextMs === null ? [] : [{ name: 'first text', ms: toText }]),
    ...(totalMs === null ? [] : [{ name: 'rest', ms: rest }]),
  ];
  return (
    <section class="timing">
      <h3>Measured by this page</h3>
      <Steps label="Measured" steps={steps} />
      <p class="hint">With the way through the admin listener, which relays what the page sends.</p>
    </section>
  );
}

interface StepsProps {
  readonly label: string;
  readonly steps: readonly TimedStep[];
}

/** A bar with the proportions of the steps, and its legend. */
function Steps({ label, steps }: StepsProps) {
  const words = steps.map(({ name, ms }) => `${name} ${duration(ms / 1000)}`);
  return (
    <>
      <div class="bar-of-steps" role="img" aria-label={`${label}: ${words.join(', ')}`}>
        {steps.map(({ name, ms }, index) => (
          <span
            key={name}
            data-series={index + 1}
            title={`${name}: ${duration(ms / 1000)}`}
            style={{ flexGrow: ms }}
          />
        ))}
      </div>
      <ul class="step-legend">
        {steps.map(({ name, ms }, index) => (
          <li key={name} class="step">
            <i data-series={index + 1} />
            <span>{name}</span>
            <b>{duration(ms / 1000)}</b>
            <span class="hint">{meanings[name]}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
