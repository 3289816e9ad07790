import assert from 'node:assert/strict';
import { mayNeedRestoring as mayNeed } from '../../src/flow/upstream/prepare.js';
import type { Endpoint } from '../../src/protocols/endpoint.js';

/** Whether a body is parsed for `restore` on its way to an upstream of its own protocol. */
export function mayNeedRestoring({ translation }: Endpoint, body: string): boolean {
  assert(translation !== null);
  return mayNeed(translation, Buffer.from(body));
}
