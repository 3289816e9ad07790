import { eventually } from '../support/eventually.js';
import type { RunningGateway } from '../support/gateway.js';

/** Bytes of bodies and answers that a gateway holds. */
export function heldBytes({ gateway }: RunningGateway): number {
  const [, , values = []] =
    gateway.metrics().gauges.find(([name]) => name === 'gateway_buffered_bytes') ?? [];
  return values[0] as number;
}

/** Resolves once what is held fits. */
export async function heldWhen(gateway: RunningGateway, fits: (bytes: number) => boolean): Promise<void> {
  await eventually(() => fits(heldBytes(gateway)), { everyMs: 5 });
}
