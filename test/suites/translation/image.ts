import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Test } from 'tap';

/** A PNG of one pixel, in base64. */
export const pixel =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';

const path = '/pixel.png';

/** Serves the pixel, and nothing else, until the test ends. @returns its URL */
export async function serveImage(t: Test): Promise<string> {
  const server = createServer((request, response) => {
    if (request.url !== path) response.writeHead(404).end();
    else response.writeHead(200, { 'content-type': 'image/png' }).end(Buffer.from(pixel, 'base64'));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`;
}
