import { createHash } from 'node:crypto';
import type { EgressProxy } from '../upstream/origin.js';
import { invalidUrl } from './problem.js';

type ProxyAddress = Pick<EgressProxy, 'secure' | 'host' | 'port' | 'authorization'>;

/**
 * Parses `http://user:password@host:port`, or `https://` for TLS to the proxy. Problems do not repeat the text, which
 * may contain a password.
 * @returns the address, with the scheme's default port and the credentials for Basic (RFC 7617), or a problem
 */
export function parseProxyUrl(text: string): ProxyAddress | { readonly problem: string } {
  if (!/^https?:\/\/[^\s\\]+$/i.test(text)) return { problem: 'must be an http:// or https:// URL' };
  let url: URL;
  let user: string;
  let password: string;
  try {
    url = new URL(text);
    user = decodeURIComponent(url.username);
    password = decodeURIComponent(url.password);
  } catch {
    return { problem: invalidUrl };
  }
  if (text.includes('?')) return { problem: 'may not hold a query' };
  if (text.includes('#')) return { problem: 'may not hold a fragment' };
  if (url.pathname !== '/') return { problem: 'may have no path' };
  if (user.includes(':')) return { problem: 'may have no colon in its user name' };
  const secure = url.protocol === 'https:';
  return {
    secure,
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? (secure ? 443 : 80) : Number(url.port),
    authorization:
      user === '' && password === ''
        ? null
        : `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
  };
}

/**
 * Creates a proxy from a checked URL.
 * @param ca PEM text to trust instead of the system's, or null
 */
export function resolveProxy(url: string, ca: string | null): EgressProxy | null {
  const address = parseProxyUrl(url);
  if ('problem' in address) return null;
  const { secure, host, port, authorization } = address;
  const trusted = secure ? ca : null;
  const secrets = createHash('sha256')
    .update(JSON.stringify([authorization, trusted]))
    .digest('hex');
  return {
    identity: JSON.stringify([secure ? 'https' : 'http', host, port, secrets]),
    secure,
    host,
    port,
    ca: trusted,
    authorization,
  };
}
