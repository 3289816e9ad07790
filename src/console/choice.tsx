import type { Signal } from '@preact/signals';

interface ChoiceProps<Name extends string> {
  /** What is chosen. */
  readonly label: string;
  /** The choices and what is read on them. */
  readonly names: readonly (readonly [name: Name, title: string])[];
  /** The one that counts. */
  readonly chosen: Signal<Name>;
  readonly onChoice?: (name: Name) => void;
}

/** A few choices side by side, of which one counts. */
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
