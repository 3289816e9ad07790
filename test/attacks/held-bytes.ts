import { eventually } from '../support/eventually.js';
import type { RunningGateway } from '../support/gateway.js';

/** Bytes of bodies and answers that a gateway holds. */
export function heldBytes(gateway: RunningGateway): number {
  return gaugeOf(gateway, 'gateway_buffered_bytes');
}

/** Bytes that its sockets hold, as far as they are counted. */
export function socketBytes(gateway: RunningGateway): number {
  return gaugeOf(gateway, 'gateway_socket_counted_bytes');
}

function gaugeOf({ gateway }: RunningGateway, gauge: string): number {
  const [, , values = []] = gateway.metrics().gauges.find(([name]) => name === gauge) ?? [];
  return values[0] as number;
}

/** Resolves once what is held fits. */
export async function heldWhen(gateway: RunningGateway, fits: (bytes: number) => boolean): Promise<void> {
  await eventually(() => fits(heldBytes(gateway)), { everyMs: 5 });
}
