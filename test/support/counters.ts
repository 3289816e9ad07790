import type { RunningGateway } from './gateway.js';

/** Returns the values of a family of counters, by its label values separated by spaces. */
export function countersOf(
  { gateway }: Pick<RunningGateway, 'gateway'>,
  family: string,
): Record<string, number> {
  const found = gateway.metrics().counters.find(([name]) => name === family);
  if (found === undefined) return {};
  const [, labels, values] = found;
  const width = labels.length / values.length;
  return Object.fromEntries(
    values.map((value, i) => [labels.slice(i * width, (i + 1) * width).join(' '), value]),
  );
}
