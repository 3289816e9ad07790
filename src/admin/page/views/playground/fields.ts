import { h } from '../../dom.js';

/** A control under its name. */
export function field(name: string, control: HTMLElement, ...rest: readonly HTMLElement[]): HTMLLabelElement {
  return h('label', { class: 'field' }, h('span', {}, name), control, ...rest);
}

/** A choice among names, which are shown by their titles. */
export function select(
  options: readonly (readonly [name: string, title: string])[],
  onChange: () => void,
): HTMLSelectElement {
  return h('select', { on: { change: onChange } }, ...optionsOf(options));
}

export function optionsOf(options: readonly (readonly [name: string, title: string])[]): HTMLOptionElement[] {
  return options.map(([value, title]) => h('option', { value }, title));
}

export interface NumberOptions {
  readonly min: number;
  readonly max?: number;
  readonly step?: number | 'any';
  readonly placeholder?: string;
  readonly value?: string;
}

export function numberInput(options: NumberOptions, onInput: () => void): HTMLInputElement {
  const { min, max, step = 1, placeholder = '', value = '' } = options;
  return h('input', {
    type: 'number',
    inputMode: step === 1 ? 'numeric' : 'decimal',
    min: `${min}`,
    max: max === undefined ? '' : `${max}`,
    step: `${step}`,
    placeholder,
    value,
    on: { input: onInput },
  });
}

/** The number in a field; null for an empty one. */
export function numberIn({ valueAsNumber }: HTMLInputElement): number | null {
  return Number.isNaN(valueAsNumber) ? null : valueAsNumber;
}
