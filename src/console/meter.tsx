interface MeterProps {
  /** Accessible name of the bar. */
  readonly label: string;
  readonly text: string;
  /** From 0; anything above 1 fills the bar. */
  readonly share: number;
  /** The bar's colour, if not the usual one. */
  readonly tone?: 'warn' | 'bad' | undefined;
}

/** A small bar that shows a share, with words above it. */
export function Meter({ label, text, share, tone }: MeterProps) {
  const percent = Math.round(Math.min(1, Math.max(0, share)) * 1000) / 10;
  return (
    <span class="meter">
      <span class="meter-text">{text}</span>
      <span
        class="meter-track"
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={percent}
        aria-valuetext={text}
        data-tone={tone ?? ''}
      >
        <span class="meter-bar" style={{ width: `${percent}%` }} />
      </span>
    </span>
  );
}
