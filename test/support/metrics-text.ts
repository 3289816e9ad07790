/** A series of a family, in Prometheus' text format. */
export interface MetricSeries {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Returns all series of a family in the text of `/metrics`. */
export function seriesOf(text: string, family: string): readonly MetricSeries[] {
  const found: MetricSeries[] = [];
  for (const line of text.split('\n')) {
    if (!line.startsWith(`${family}{`) && !line.startsWith(`${family} `)) continue;
    const labels = [...line.matchAll(/([a-z_]+)="([^"]*)"/g)].map(([, name, value]) => [name, value]);
    found.push({ labels: Object.fromEntries(labels), value: Number(line.slice(line.lastIndexOf(' ') + 1)) });
  }
  return found;
}

/** Returns the sum of a family's values with all of these labels. */
export function sumOf(text: string, family: string, labels: Readonly<Record<string, string>> = {}): number {
  let sum = 0;
  for (const series of seriesOf(text, family)) {
    if (Object.entries(labels).every(([name, value]) => series.labels[name] === value)) sum += series.value;
  }
  return sum;
}
