import type { Tone } from './targets/target.js';

/** A coloured word. */
export function Badge({ tone, children }: { readonly tone: Tone; readonly children: string }) {
  return (
    <span class="badge" data-tone={tone}>
      {children}
    </span>
  );
}
