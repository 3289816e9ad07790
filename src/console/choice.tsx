import type { Signal } from '@preact/signals';

interface ChoiceProps<Name extends string> {
  /** The subject of the choice. */
  readonly label: string;
  /** The choices with their titles. */
  readonly names: readonly (readonly [name: Name, title: string])[];
  /** The current choice. */
  readonly chosen: Signal<Name>;
  readonly onChoice?: (name: Name) => void;
}

/** A few choices side by side, one of which is selected. */
export function Choice<Name extends string>({ label, names, chosen, onChoice }: ChoiceProps<Name>) {
  const choose = (name: Name): void => {
    if (name === chosen.value) return;
    chosen.value = name;
    onChoice?.(name);
  };
  return (
    <div class="switch" role="group" aria-label={label}>
      {names.map(([name, title]) => (
        <button key={name} type="button" aria-pressed={name === chosen.value} onClick={() => choose(name)}>
          {title}
        </button>
      ))}
    </div>
  );
}
