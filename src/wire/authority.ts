/** Returns `host:port`, with IPv6 addresses in brackets (RFC 3986 section 3.2.2). */
export function formatAuthority(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}
