import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Tool } from '../machine.js';
import { freePort, untilListening } from '../ports.js';
import { startProcess } from '../proc.js';
import type { Contender, Setup } from './contender.js';

function config(setup: Setup, port: number, connections: number): string {
  return `
global
  nbthread 1
  maxconn ${connections}
defaults
  mode http
  option http-keep-alive
  option http-no-delay
  timeout connect 5s
  timeout client 300s
  timeout server 300s
  timeout http-keep-alive 300s
  timeout tunnel 300s
frontend bench
  bind 127.0.0.1:${port} backlog 4096
  default_backend upstream
backend upstream
  http-reuse always
  server upstream 127.0.0.1:${setup.upstreamPort}
`;
}

/**
 * HAProxy with one thread, keep-alive on both sides and no log.
 * @param openFiles limit of open files: HAProxy does not start when it allows fewer than two for each connection
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
      });
      await untilListening(port, server);
      const prefix = `/${setup.answer}`;
      return { port, prefix, path: `${prefix}/v1/chat/completions`, process: server };
    },
  };
}
