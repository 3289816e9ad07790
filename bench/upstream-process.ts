import { fileURLToPath } from 'node:url';
import type { CertificateFiles } from './certificate.js';
import { type Process, startProcess } from './proc.js';

const script = fileURLToPath(new URL('./upstream/main.js', import.meta.url));

export interface BenchUpstream {
  readonly port: number;
  readonly process: Process;
}

/**
 * Starts the bench upstream.
 * @param plan.engine `uws` for whole answers and separate events, `net` for streams in one write: whichever is the
 * faster
 *   two for each (1 KB: 169 k against 109 k req/s, 300 KB: 24.8 k against 5.0 k, load client on the same core)
 * @param plan.gate number of requests that the slow answer waits for
 * @param plan.certificate certificate of a TLS upstream, only for `uws`
 */
export async function startUpstream(plan: {
  readonly engine: 'net' | 'uws';
  readonly core: number | null;
  readonly gate?: number;
  readonly certificate?: CertificateFiles | null;
}): Promise<BenchUpstream> {
  const child = await startProcess({
    name: 'bench upstream',
    command: process.execPath,
    args: [script, plan.engine, ...(plan.certificate ? [plan.certificate.cert, plan.certificate.key] : [])],
    core: plan.core,
    env: { ...process.env, BENCH_GATE: String(plan.gate ?? 1500) },
  });
  const { port } = JSON.parse(await child.line()) as { port: number };
  return { port, process: child };
}
