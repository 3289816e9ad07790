import { listenWithNet } from './net-engine.js';
import { listenWithUws } from './uws-engine.js';

/** Run as its own process: `main.js net|uws`. Prints `{"port":N}` once it listens. */
const port = await (process.argv[2] === 'uws' ? listenWithUws() : listenWithNet());
process.stdout.write(`${JSON.stringify({ port })}\n`);
