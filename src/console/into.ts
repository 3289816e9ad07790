import type { Signal } from '@preact/signals';

interface Typed {
  readonly currentTarget: { readonly value: string };
}

/** @returns a listener that stores the value of an input in a signal */
export function into(signal: Signal<string>): (event: Typed) => void {
  return ({ currentTarget }) => {
    signal.value = currentTarget.value;
  };
}
