import { listenWithNet } from './net-engine.js';
import { listenWithUws } from './uws-engine.js';

/** Run as its own process: `main.js net`, or `main.js uws` with the files of a certificate and its key, to speak TLS. Prints `{"port":N}` once it listens. */
const [engine, cert, key] = process.argv.slice(2);
const port = await (engine === 'uws' ? listenWithUws(cert, key) : listenWithNet());
process.stdout.write(`${JSON.stringify({ port })}\n`);
