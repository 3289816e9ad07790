import type { BrowserContext } from 'playwright-core';

/**
 * Notes what no page of the console may do: errors in the browser's console, which breaches of the policy are among,
 * what its scripts throw, and requests to any other host.
 * @param origin its own
 * @param refusals statuses above 399 that it is to be answered with: a browser tells of each in its console
 * @returns a list that grows as long as the browser goes on
 */
export function watchFaults(
  context: BrowserContext,
  origin: string,
  refusals: readonly number[],
): readonly string[] {
  const faults: string[] = [];
  const isRefusal = (text: string): boolean =>
    refusals.some((status) =>
      text.startsWith(`Failed to load resource: the server responded with a status of ${status} `),
    );
  context.on('console', (message) => {
    if (message.type() !== 'error' || isRefusal(message.text())) return;
    faults.push(`${message.text()} ${message.location().url}`);
  });
  context.on('weberror', (error) => faults.push(`thrown: ${error.error().stack ?? error.error().message}`));
  context.on('request', (request) => {
    const asked = new URL(request.url());
    const isOwn = asked.origin === origin || asked.protocol === 'data:' || asked.protocol === 'blob:';
    if (!isOwn) faults.push(`asked elsewhere: ${request.url()}`);
  });
  context.on('page', (page) => {
    page.on('websocket', (socket) => faults.push(`a WebSocket to ${socket.url()}`));
  });
  return faults;
}
