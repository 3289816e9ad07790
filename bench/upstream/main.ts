import { listenWithNet } from './net-engine.js';
import { listenWithUws } from './uws-engine.js';

/**
 * Runs as a separate process: `main.js net`, or with TLS `main.js uws` with the files of a certificate and its key.
 * Prints `{"port":N}` once it listens.
 */
const [engine, cert, key] = process.argv.slice(2);
const port = await (engine === 'uws' ? listenWithUws(cert, key) : listenWithNet());
process.stdout.write(`${JSON.stringify({ port })}\n`);
