import type { LiveState } from '../../../live-state.js';
import { createChoice } from '../../choice.js';
import { fill, h, setText } from '../../dom.js';
import {
  type Grouping,
  groupings,
  type RangeName,
  rangeDays,
  rangeProblem,
  type UsageAsked,
} from './query.js';

/** What the reader chooses of a report. */
export interface UsageControls {
  readonly element: HTMLElement;
  /** @returns null where the choice is none yet, which is told */
  asked(): UsageAsked | null;
  /** Offers the names of keys and models that the gateway knows. */
  onState(state: LiveState): void;
}

const rangeTitles: readonly (readonly [RangeName, string])[] = [
  ['30 days', '30 days'],
  ['7 days', '7 days'],
  ['today', 'Today'],
  ['custom', 'Custom'],
];
const groupingTitles: Readonly<Record<Grouping, string>> = { day: 'Day', model: 'Model', key: 'Key' };

/** @param onChange something else is asked for */
export function createUsageControls(onChange: () => void): UsageControls {
  const problem = h('p', { class: 'problem', attributes: { role: 'alert' } });
  const day = (): HTMLInputElement => h('input', { type: 'date', on: { change: onChange } });
  const [from, to] = [day(), day()];
  const days = h(
    'div',
    { class: 'row', hidden: true },
    h('label', { class: 'field' }, h('span', {}, 'From'), from),
    h('label', { class: 'field' }, h('span', {}, 'To'), to),
  );
  const range = createChoice('Days', rangeTitles, (name) => {
    days.hidden = name !== 'custom';
    if (name === 'custom' && from.value === '') {
      const usual = rangeDays('7 days', Date.now());
      from.value = usual.from;
      to.value = usual.to;
    }
    onChange();
  });
  const boxes = groupings.map((each) =>
    h('input', {
      type: 'checkbox',
      value: each,
      checked: each !== 'key',
      on: { change: onChange },
    }),
  );
  const names = (id: string) => h('datalist', { id });
  const [keyNames, modelNames] = [names('usage-keys'), names('usage-models')];
  const filter = (list: HTMLDataListElement): HTMLInputElement =>
    h('input', {
      type: 'search',
      placeholder: 'all',
      autocomplete: 'off',
      spellcheck: false,
      attributes: { list: list.id },
      on: { change: onChange },
    });
  const [key, model] = [filter(keyNames), filter(modelNames)];

  return {
    element: h(
      'form',
      { class: 'usage-controls', on: { submit: (event: SubmitEvent) => event.preventDefault() } },
      h('div', { class: 'field' }, h('span', {}, 'Days in UTC'), range.element),
      days,
      h(
        'div',
        { class: 'field', attributes: { role: 'group', 'aria-label': 'Rows by' } },
        h('span', {}, 'Rows by'),
        h(
          'div',
          { class: 'row' },
          ...boxes.map((box, index) =>
            h('label', { class: 'check' }, box, h('span', {}, groupingTitles[groupings[index] as Grouping])),
          ),
        ),
      ),
      h('label', { class: 'field' }, h('span', {}, 'Of the key'), key),
      h('label', { class: 'field' }, h('span', {}, 'For the model'), model),
      keyNames,
      modelNames,
      problem,
    ),
    asked() {
      const name = range.chosen;
      const span = name === 'custom' ? { from: from.value, to: to.value } : rangeDays(name, Date.now());
      const wrong = rangeProblem(span.from, span.to);
      setText(problem, wrong ?? '');
      if (wrong !== null) return null;
      const by = groupings.filter((_, index) => boxes[index]?.checked === true);
      return { ...span, by, key: key.value.trim(), model: model.value.trim() };
    },
    onState(state) {
      offer(keyNames, state.keys);
      offer(modelNames, state.models);
    },
  };
}

function offer(list: HTMLDataListElement, known: readonly { readonly name: string }[]): void {
  const names = known.map(({ name }) => name).sort();
  const isSame =
    names.length === list.children.length && names.every((name, i) => list.options[i]?.value === name);
  if (!isSame)
    fill(
      list,
      names.map((value) => h('option', { value })),
    );
}
