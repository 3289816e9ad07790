import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { certificateFiles } from '../certificate.js';
import type { Tool } from '../machine.js';
import { freePort, untilListening } from '../ports.js';
import { startProcess } from '../proc.js';
import type { Contender, Setup } from './contender.js';

/** How media answers are buffered, never in a file: `on` and `off` use nginx's default sizes. */
type NginxBuffering = 'on' | 'off' | 'on, 64 KB';

/** nginx's default (on) for whole answers, and off for streams, which SSE requires. */
function bufferingOf(setup: Setup): NginxBuffering {
  return ['sse', 'drip', 'pace', 'events', 'stamped'].includes(setup.answer) ? 'off' : 'on';
}

/** nginx passes an upgrade on only if the config sets both of its headers. */
function headersOf(setup: Setup): string {
  return setup.answer === 'realtime'
    ? 'proxy_set_header upgrade $http_upgrade; proxy_set_header connection "upgrade";'
    : 'proxy_set_header connection "";';
}

function config(setup: Setup, port: number, prefix: string, buffering: NginxBuffering): string {
  const { cert, key, ca } = certificateFiles(setup.directory);
  const large = buffering === 'on, 64 KB' ? 'proxy_buffer_size 64k; proxy_buffers 16 64k;' : '';
  return `
daemon off;
worker_processes ${setup.workers ?? 1};
pid ${prefix}/nginx.pid;
error_log stderr error;
events { worker_connections 65536; multi_accept on; }
http {
  access_log ${setup.accessLog ? `${prefix}/access.log` : 'off'};
  client_body_temp_path ${prefix}/body;
  proxy_temp_path ${prefix}/proxy;
  fastcgi_temp_path ${prefix}/fastcgi;
  uwsgi_temp_path ${prefix}/uwsgi;
  scgi_temp_path ${prefix}/scgi;
  tcp_nodelay on;
  keepalive_requests 1000000000;
  client_max_body_size 0;
  client_body_buffer_size 1m;
  upstream bench { server 127.0.0.1:${setup.upstreamPort}; keepalive 256; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port} backlog=4096${setup.clientTls ? ' ssl' : ''};
    ${setup.clientTls ? `ssl_certificate ${cert}; ssl_certificate_key ${key};` : ''}
    location / {
      proxy_pass ${setup.upstreamTls ? 'https' : 'http'}://bench;
      ${setup.upstreamTls ? `proxy_ssl_verify on; proxy_ssl_name localhost; proxy_ssl_trusted_certificate ${ca};` : ''}
      proxy_http_version 1.1;
      ${headersOf(setup)}
      proxy_buffering ${buffering === 'off' ? 'off' : 'on'}; ${large}
      ${setup.answer === 'media' ? 'proxy_max_temp_file_size 0;' : ''}
      proxy_request_buffering ${setup.answer === 'media' ? 'off' : 'on'};
      proxy_read_timeout 300s;
    }
  }
}
`;
}

/**
 * nginx with keep-alive on both sides.
 * @param buffering of answers, if it is to differ from the usual one
 */
export function nginx(tool: Tool, buffering: NginxBuffering | null = null): Contender {
  const name = buffering === null ? 'nginx' : `nginx (${buffering})`;
  return {
    name,
    async start(setup) {
      const port = await freePort();
      const prefix = join(setup.directory, `nginx-${port}`);
      mkdirSync(prefix, { mode: 0o777 });
      const file = join(prefix, 'nginx.conf');
      writeFileSync(file, config(setup, port, prefix, buffering ?? bufferingOf(setup)));
      const server = await startProcess({
        name,
        command: tool.path,
        args: ['-p', prefix, '-c', file, '-e', 'stderr'],
        core: setup.core,
      });
      await untilListening(port, server);
      const path = `/${setup.answer}/v1/chat/completions`;
      return {
        port,
        secure: setup.clientTls ?? false,
        prefix: `/${setup.answer}`,
        path,
        process: server,
      };
    },
  };
}
