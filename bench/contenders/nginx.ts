import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Tool } from '../machine.js';
import { freePort, untilListening } from '../ports.js';
import { startProcess } from '../proc.js';
import type { Contender, Setup } from './contender.js';

/** Buffering is nginx's own default for whole answers and off for streams, as one has to set it for SSE. */
function config(setup: Setup, port: number, prefix: string): string {
  const streams = ['sse', 'drip', 'pace'].includes(setup.answer);
  return `
daemon off;
worker_processes 1;
pid ${prefix}/nginx.pid;
error_log stderr error;
events { worker_connections 65536; multi_accept on; }
http {
  access_log off;
  client_body_temp_path ${prefix}/body;
  proxy_temp_path ${prefix}/proxy;
  fastcgi_temp_path ${prefix}/fastcgi;
  uwsgi_temp_path ${prefix}/uwsgi;
  scgi_temp_path ${prefix}/scgi;
  tcp_nodelay on;
  keepalive_requests 1000000000;
  client_max_body_size 64m;
  client_body_buffer_size 1m;
  upstream bench { server 127.0.0.1:${setup.upstreamPort}; keepalive 256; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / {
      proxy_pass http://bench;
      proxy_http_version 1.1;
      proxy_set_header connection "";
      proxy_buffering ${streams ? 'off' : 'on'};
      proxy_read_timeout 300s;
    }
  }
}
`;
}

/** nginx with one worker, keep-alive on both sides and no log. */
export function nginx(tool: Tool): Contender {
  return {
    name: 'nginx',
    async start(setup) {
      const port = await freePort();
      const prefix = join(setup.directory, `nginx-${port}`);
      mkdirSync(prefix, { mode: 0o777 });
      const file = join(prefix, 'nginx.conf');
      writeFileSync(file, config(setup, port, prefix));
      const server = await startProcess({
        name: 'nginx',
        command: tool.path,
        args: ['-p', prefix, '-c', file, '-e', 'stderr'],
        core: setup.core,
      });
      await untilListening(port, server);
      return { port, path: `/${setup.answer}/v1/chat/completions`, process: server };
    },
  };
}
