import type { Work } from '../bench.js';
import { bodiesWork } from './bodies.js';
import { chatWorks } from './chat.js';
import { keysWork } from './keys.js';
import { latencyWork } from './latency.js';
import { streamsWork } from './streams.js';

/** All works, in the order in which they run. */
export const works: readonly Work[] = [...chatWorks, latencyWork, keysWork, streamsWork, bodiesWork];
