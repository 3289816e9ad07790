import { performance } from 'node:perf_hooks';
import type { Services } from '../services.js';

const everyMs = 60_000;

/** Tells the operator that the store fails conversations, and not for each of the calls that go on without it. */
export function tellStoreFault({ keeping, reportFault }: Services, fault: unknown): void {
  const now = performance.now();
  if (now < keeping.tellFrom) return;
  keeping.tellFrom = now + everyMs;
  reportFault('promise', new Error('The store of conversations fails.', { cause: fault }), null);
}
