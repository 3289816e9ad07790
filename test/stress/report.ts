/** A measurement of a scenario, with its bound, if any. */
export interface Line {
  readonly what: string;
  readonly measured: string;
  readonly bound: string;
  /** Null if it is only reported. */
  readonly kept: boolean | null;
}

/** A figure that is only reported. */
export function told(what: string, measured: string | number): Line {
  return { what, measured: String(measured), bound: '', kept: null };
}

/** A figure with a bound. */
export function held(what: string, measured: string | number, bound: string, kept: boolean): Line {
  return { what, measured: String(measured), bound, kept };
}

/** Formats megabytes and milliseconds, rounded. */
export const mb = (value: number): string => `${value.toFixed(1)} MB`;
export const ms = (value: number): string => `${value.toFixed(1)} ms`;

/** Formats the lines of one scenario as a table. */
export function table(name: string, seconds: number, lines: readonly Line[]): string {
  const widths = [0, 0, 0];
  const rows = lines.map(({ what, measured, bound, kept }) => {
    const cells = [what, measured, bound, kept === null ? '' : kept ? 'ok' : 'FAILED'];
    for (const [column, width] of widths.entries())
      widths[column] = Math.max(width, cells[column]?.length ?? 0);
    return cells;
  });
  const text = rows.map((cells) =>
    `  ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd(),
  );
  return `${[`${name} (${seconds.toFixed(1)} s)`, ...text].join('\n')}\n\n`;
}
