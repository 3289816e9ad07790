import type { LiveState } from '../../metrics/live-state.js';
import { bytes, dollars, whole } from '../format.js';
import { useSession } from '../session.js';

type Totals = LiveState['totals'];

interface Total {
  /** In `data-stat`. */
  readonly name: string;
  readonly label: string;
  value(totals: Totals): number;
  text(value: number): string;
}

const sums: readonly Total[] = [
  { name: 'requests-total', label: 'Requests', value: ({ requests }) => requests, text: whole },
  { name: 'errors-total', label: 'Errors', value: ({ errors }) => errors, text: whole },
  { name: 'refusals-total', label: 'Refusals', value: ({ refusals }) => refusals, text: whole },
  { name: 'tokens-input-total', label: 'Tokens in', value: ({ tokens }) => tokens.input, text: whole },
  {
    name: 'tokens-cached-total',
    label: 'Tokens in, cached',
    value: ({ tokens }) => tokens.cached,
    text: whole,
  },
  { name: 'tokens-output-total', label: 'Tokens out', value: ({ tokens }) => tokens.output, text: whole },
  {
    name: 'tokens-reasoning-total',
    label: 'Tokens out, reasoning',
    value: ({ tokens }) => tokens.reasoning,
    text: whole,
  },
  { name: 'cost-total', label: 'Cost', value: ({ costUsd }) => costUsd, text: dollars },
  { name: 'bytes-in-total', label: 'Bytes in', value: ({ bytesIn }) => bytesIn, text: bytes },
  { name: 'bytes-out-total', label: 'Bytes out', value: ({ bytesOut }) => bytesOut, text: bytes },
];

/** The counts since the gateway's start, with all digits in `data-value` and in the tooltip. */
export function Totals() {
  const totals = useSession().state.value?.totals;
  const refused = Object.entries(totals?.limitRefusals ?? {}).filter(([, number]) => number > 0);
  return (
    <div class="panel">
      <div class="panel-head">
        <h3>Since the start</h3>
      </div>
      <dl class="totals">
        {sums.map(({ name, label, value, text }) => {
          const number = totals && value(totals);
          return (
            <div
              key={name}
              data-stat={name}
              data-value={number}
              title={number?.toLocaleString('en-US', { maximumFractionDigits: 9 })}
            >
              <dt>{label}</dt>
              <dd>{number === undefined ? '' : text(number)}</dd>
            </div>
          );
        })}
        {refused.length > 0 && (
          <div class="wide">
            <dt>Refused by limits</dt>
            <dd>{refused.map(([limit, number]) => `${limit} ${whole(number)}`).join(' · ')}</dd>
          </div>
        )}
      </dl>
    </div>
  );
}
