import type { Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import type { TypedNumber } from './settings.js';

interface FieldProps {
  readonly name: string;
  readonly children: ComponentChildren;
}

/** A control with its label. */
export function Field({ name, children }: FieldProps) {
  return (
    <label class="field">
      <span>{name}</span>
      {children}
    </label>
  );
}

interface SelectProps {
  readonly name: string;
  /** The options with their titles. */
  readonly options: readonly (readonly [value: string, title: string])[];
  readonly chosen: string;
  readonly onChange: (chosen: string) => void;
}

/** A select box. */
export function Select({ name, options, chosen, onChange }: SelectProps) {
  return (
    <Field name={name}>
      <select
        value={chosen}
        disabled={options.length === 0}
        onChange={({ currentTarget }) => onChange(currentTarget.value)}
      >
        {options.map(([value, title]) => (
          <option key={value} value={value}>
            {title}
          </option>
        ))}
      </select>
    </Field>
  );
}

interface NumberFieldProps {
  readonly name: string;
  readonly typed: Signal<TypedNumber>;
  readonly min: number;
  readonly max?: number;
  readonly step?: number;
  readonly placeholder?: string;
}

export function NumberField({ name, typed, min, max, step = 1, placeholder }: NumberFieldProps) {
  return (
    <Field name={name}>
      <input
        type="number"
        inputMode={step === 1 ? 'numeric' : 'decimal'}
        min={min}
        max={max}
        step={step}
        placeholder={placeholder}
        value={typed.value.text}
        onInput={({ currentTarget }) => {
          typed.value = { text: currentTarget.value, isBad: currentTarget.validity.badInput };
        }}
      />
    </Field>
  );
}
