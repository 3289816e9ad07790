/** A step of a call, in milliseconds. */
export interface TimedStep {
  readonly name: string;
  readonly ms: number;
}

const step = /^\s*([\w!#$%&'*+.^`|~-]+)\s*((?:;[^;]*)*)$/;
const duration = /^\s*dur\s*=\s*"?(\d+(?:\.\d+)?)"?\s*$/i;

/** Reads a `server-timing` header: its steps that say how long they took, in their order. */
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
 * The steps as stretches that follow each other. The gateway's own share has authentication and parsing in it, so what
 * is left of it beside them is a stretch of its own.
 */
export function stretches(steps: readonly TimedStep[]): TimedStep[] {
  const ms = (name: string): number => steps.find((each) => each.name === name)?.ms ?? 0;
  const rest = Math.max(0, ms('own') - ms('auth') - ms('parse'));
  return [...steps.filter(({ name }) => name !== 'own'), ...(rest > 0 ? [{ name: 'other', ms: rest }] : [])];
}
