import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { certificateFiles } from '../certificate.js';
import type { Tool } from '../machine.js';
import { freePort, untilListening } from '../ports.js';
import { startProcess } from '../proc.js';
import type { Contender, Setup } from './contender.js';

function config(setup: Setup, port: number, connections: number): string {
  const { both, ca } = certificateFiles(setup.directory);
  return `
global
  nbthread 1
  maxconn ${connections}
${setup.accessLog ? '  log stdout format raw local0' : ''}
defaults
  mode http
  option http-keep-alive
  option http-no-delay
${setup.accessLog ? '  log global\n  option httplog' : ''}
  timeout connect 5s
  timeout client 300s
  timeout server 300s
  timeout http-keep-alive 300s
  timeout tunnel 300s
frontend bench
  bind 127.0.0.1:${port} backlog 4096${setup.clientTls ? ` ssl crt ${both}` : ''}
  default_backend upstream
backend upstream
  http-reuse always
  server upstream 127.0.0.1:${setup.upstreamPort}${setup.upstreamTls ? ` ssl ca-file ${ca}` : ''}
`;
}

/**
 * HAProxy with one thread and keep-alive on both sides.
 * @param openFiles limit of open files: HAProxy refuses to start with fewer than two for each connection
 */
export function haproxy(tool: Tool, openFiles: number): Contender {
  return {
    name: 'haproxy',
    async start(setup) {
      const port = await freePort();
      const file = join(setup.directory, `haproxy-${port}.cfg`);
      writeFileSync(file, config(setup, port, Math.min(32_768, Math.floor(openFiles / 2) - 64)));
      const server = await startProcess({
        name: 'haproxy',
        command: tool.path,
        args: ['-db', '-f', file],
        core: setup.core,
        outputFile: join(setup.directory, `haproxy-${port}.log`),
      });
      await untilListening(port, server);
      const prefix = `/${setup.answer}`;
      return {
        port,
        secure: setup.clientTls ?? false,
        prefix,
        path: `${prefix}/v1/chat/completions`,
        process: server,
      };
    },
  };
}
