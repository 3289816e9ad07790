/** A step of a call, in milliseconds. */
export interface TimedStep {
  readonly name: string;
  readonly ms: number;
}

const step = /^\s*([\w!#$%&'*+.^`|~-]+)\s*((?:;[^;]*)*)$/;
const duration = /^\s*dur\s*=\s*"?(\d+(?:\.\d+)?)"?\s*$/i;

/** Parses a `server-timing` header: the steps with a duration, in order. */
export function parseServerTiming(header: string): TimedStep[] {
  return header.split(',').flatMap((text) => {
    const [, name, parameters = ''] = step.exec(text) ?? [];
    const [, ms] =
      parameters
        .split(';')
        .map((each) => duration.exec(each) ?? [])
        .find(([all]) => all !== undefined) ?? [];
    return name === undefined || ms === undefined ? [] : [{ name, ms: Number(ms) }];
  });
}

/**
 * The steps as consecutive intervals. The gateway's own share includes authentication and parsing, so its remainder is an
 * interval of its own.
 */
export function stretches(steps: readonly TimedStep[]): TimedStep[] {
  const ms = (name: string): number => steps.find((each) => each.name === name)?.ms ?? 0;
  const rest = Math.max(0, ms('own') - ms('auth') - ms('parse'));
  return [...steps.filter(({ name }) => name !== 'own'), ...(rest > 0 ? [{ name: 'other', ms: rest }] : [])];
}
