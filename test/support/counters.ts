import type { RunningGateway } from './gateway.js';

/** What a family of counters of a gateway has counted so far, by the values of its labels with spaces between them. */
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
