import { type Signal, signal, useSignal, useSignalEffect } from '@preact/signals';
import { Choice } from '../choice.js';
import { into } from '../into.js';
import { useSession } from '../session.js';
import {
  type Grouping,
  groupings,
  type RangeName,
  rangeDays,
  rangeProblem,
  type UsageAsked,
} from './query.js';

/** The reader's choices for a report. */
interface UsageChoices {
  readonly range: Signal<RangeName>;
  /** First day of the custom range; empty until that was first chosen. */
  readonly from: Signal<string>;
  readonly to: Signal<string>;
  readonly by: Signal<readonly Grouping[]>;
  readonly key: Signal<string>;
  readonly model: Signal<string>;
}

export function usualChoices(): UsageChoices {
  return {
    range: signal<RangeName>('30 days'),
    from: signal(''),
    to: signal(''),
    by: signal<readonly Grouping[]>(['day', 'model']),
    key: signal(''),
    model: signal(''),
  };
}

/** @returns the query, or the reason why it is incomplete */
export function askedBy({ range, from, to, by, key, model }: UsageChoices): UsageAsked | string {
  const days =
    range.value === 'custom' ? { from: from.value, to: to.value } : rangeDays(range.value, Date.now());
  const asked = { ...days, by: by.value, key: key.value.trim(), model: model.value.trim() };
  return rangeProblem(days.from, days.to) ?? asked;
}

const rangeTitles: readonly (readonly [RangeName, string])[] = [
  ['30 days', '30 days'],
  ['7 days', '7 days'],
  ['today', 'Today'],
  ['custom', 'Custom'],
];
const groupingTitles: Readonly<Record<Grouping, string>> = { day: 'Day', model: 'Model', key: 'Key' };

interface UsageControlsProps {
  readonly choices: UsageChoices;
  /** Why no query can be sent; empty if one can. */
  readonly problem: string;
}

/** The form of a query. Typed values apply when the field loses focus, or on Enter. */
export function UsageControls({ choices, problem }: UsageControlsProps) {
  const { range, from, to, by, key, model } = choices;
  const fillDays = (name: RangeName): void => {
    if (name !== 'custom' || from.value !== '') return;
    const usual = rangeDays('7 days', Date.now());
    from.value = usual.from;
    to.value = usual.to;
  };
  const toggle = (grouping: Grouping, isChosen: boolean): void => {
    by.value = groupings.filter((each) => (each === grouping ? isChosen : by.value.includes(each)));
  };
  return (
    <form class="usage-controls" onSubmit={(event) => event.preventDefault()}>
      <div class="field">
        <span>Days in UTC</span>
        <Choice label="Days" names={rangeTitles} chosen={range} onChoice={fillDays} />
      </div>
      {range.value === 'custom' && (
        <div class="row">
          <Field label="From" type="date" value={from} />
          <Field label="To" type="date" value={to} />
        </div>
      )}
      <div class="field" role="group" aria-label="Rows by">
        <span>Rows by</span>
        <div class="row">
          {groupings.map((each) => (
            <label key={each} class="check">
              <input
                type="checkbox"
                checked={by.value.includes(each)}
                onChange={({ currentTarget }) => toggle(each, currentTarget.checked)}
              />
              <span>{groupingTitles[each]}</span>
            </label>
          ))}
        </div>
      </div>
      <Field label="Of the key" type="search" list="usage-keys" value={key} />
      <Field label="For the model" type="search" list="usage-models" value={model} />
      <Names id="usage-keys" of="keys" />
      <Names id="usage-models" of="models" />
      <p class="problem" role="alert">
        {problem}
      </p>
    </form>
  );
}

interface FieldProps {
  readonly label: string;
  readonly type: 'date' | 'search';
  readonly list?: string;
  readonly value: Signal<string>;
}

function Field({ label, type, list, value }: FieldProps) {
  const typed = useSignal('');
  useSignalEffect(() => {
    typed.value = value.value;
  });
  return (
    <label class="field">
      <span>{label}</span>
      <input
        type={type}
        list={list}
        placeholder={list && 'all'}
        autocomplete="off"
        spellcheck={false}
        value={typed}
        onInput={into(typed)}
        onChange={into(value)}
      />
    </label>
  );
}

interface NamesProps {
  readonly id: string;
  readonly of: 'keys' | 'models';
}

/** Suggestions for a field: the names that the gateway knows. */
function Names({ id, of }: NamesProps) {
  const known: readonly { readonly name: string }[] = useSession().state.value?.[of] ?? [];
  return (
    <datalist id={id}>
      {known
        .map(({ name }) => name)
        .sort()
        .map((name) => (
          <option key={name} value={name} />
        ))}
    </datalist>
  );
}
