import type { Test } from 'tap';
import { startHttpUpstream } from '../../support/upstream.js';

/** A PNG of one pixel, in base64. */
export const pixel =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';

const path = '/pixel.png';

/** Serves the pixel, and nothing else, until the test ends. @returns its URL */
export async function serveImage(t: Test): Promise<string> {
  const { origin } = await startHttpUpstream(t, (request, response) => {
    if (request.url !== path) response.writeHead(404).end();
    else response.writeHead(200, { 'content-type': 'image/png' }).end(Buffer.from(pixel, 'base64'));
  });
  return `${origin}${path}`;
}
