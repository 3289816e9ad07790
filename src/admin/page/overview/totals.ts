import type { LiveState } from '../../live-state.js';
import { h, setText } from '../dom.js';
import { bytes, dollars, whole } from '../format.js';

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

/** What was counted since the gateway started, with all digits in `data-value` and under the pointer. */
export function createTotals(): { readonly element: HTMLElement; update(totals: Totals): void } {
  const drawn = sums.map((sum) => {
    const value = h('dd');
    const element = h('div', { data: { stat: sum.name } }, h('dt', {}, sum.label), value);
    return { sum, element, value };
  });
  const limits = h('dd');
  const ofLimits = h('div', { class: 'wide' }, h('dt', {}, 'Refused by limits'), limits);
  return {
    element: h(
      'div',
      { class: 'panel' },
      h('div', { class: 'panel-head' }, h('h3', {}, 'Since the start')),
      h('dl', { class: 'totals' }, ...drawn.map(({ element }) => element), ofLimits),
    ),
    update(totals) {
      for (const { sum, element, value } of drawn) {
        const number = sum.value(totals);
        element.dataset.value = `${number}`;
        element.title = number.toLocaleString('en-US', { maximumFractionDigits: 9 });
        setText(value, sum.text(number));
      }
      const refused = Object.entries(totals.limitRefusals).filter(([, number]) => number > 0);
      ofLimits.hidden = refused.length === 0;
      setText(limits, refused.map(([limit, number]) => `${limit} ${whole(number)}`).join(' · '));
    },
  };
}
