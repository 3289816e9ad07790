import { startSimulator } from './server.js';

/** Without a gateway the simulator ends after this long without a connection: gateways close idle ones sooner. */
const unusedMs = 5000;

/** A setting of the environment as a non-negative number, or null if it is not one. */
function setting(name: string, fallback: number): number | null {
  const text = process.env[name] ?? '';
  const number = text === '' ? fallback : Number(text);
  return Number.isFinite(number) && number >= 0 ? number : null;
}

const port = setting('SIMULATOR_PORT', 0);
const latencyMs = setting('SIMULATOR_LATENCY_MS', 10);
const tokensPerSecond = setting('SIMULATOR_TOKENS_PER_SECOND', 200);

if (port === null || latencyMs === null || tokensPerSecond === null) {
  process.stderr.write(
    'SIMULATOR_PORT, SIMULATOR_LATENCY_MS and SIMULATOR_TOKENS_PER_SECOND are numbers from 0 on.\n',
  );
  process.exit(1);
}

process.on('SIGTERM', () => process.exit(0));
// Node would open its debugger.
process.on('SIGUSR1', () => undefined);
if (process.send !== undefined) {
  // The terminal sends SIGINT to the whole process group; a draining gateway still needs its upstream.
  process.on('SIGINT', () => undefined);
}

const simulator = await startSimulator({ port, latencyMs, tokensPerSecond });
if (process.send !== undefined) {
  if (!process.connected) process.exit(0);
  // Workers may still serve after their gateway's primary has died.
  process.on('disconnect', () => simulator.whenUnused(unusedMs, () => process.exit(0)));
  process.send({ type: 'listening', port: simulator.port });
} else {
  process.stdout.write(`listening 127.0.0.1:${simulator.port}\n`);
}
