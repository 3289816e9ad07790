import { createHash, timingSafeEqual } from 'node:crypto';
import type { AdminTokens } from '../config/resolve.js';
import { GatewayError } from '../errors.js';

/** Access levels: anybody, metrics, read-only, and changes. */
export type Access = 'open' | 'metrics' | 'read' | 'write';

/** In ascending order. Each level includes those before it. */
const order: readonly Access[] = ['open', 'metrics', 'read', 'write'];

const scheme = /^bearer +/i;

const noToken = new GatewayError(
  'invalid_api_key',
  'The admin token is missing or wrong: send it as "authorization: Bearer …".',
);
const onlyMetrics = new GatewayError(
  'permission_denied',
  'This token is only valid for GET /metrics (admin.metricsToken).',
);
const onlyReads = new GatewayError(
  'permission_denied',
  'This token is read-only (admin.readToken): use admin.token.',
);

/**
 * Determines the access level of a request from its `authorization` header, in constant time.
 * @param wanted the required level
 * @throws GatewayError of status 401 without a known token, 403 with one of a lower level
 */
export function checkAccess(authorization: string | undefined, tokens: AdminTokens, wanted: Access): Access {
  if (wanted === 'open') return 'open';
  const granted = accessBy(authorization, tokens);
  if (granted === null) throw noToken;
  if (order.indexOf(granted) < order.indexOf(wanted)) throw granted === 'metrics' ? onlyMetrics : onlyReads;
  return granted;
}

/** How clients send what is not ASCII: browsers in Latin-1, most others in UTF-8. Node reads a header as Latin-1. */
const encodings = ['utf8', 'latin1'] as const;

function accessBy(authorization: string | undefined, tokens: AdminTokens): Access | null {
  if (authorization === undefined || !scheme.test(authorization)) return null;
  const given = digest(Buffer.from(authorization.replace(scheme, '').replace(/[ \t]+$/, ''), 'latin1'));
  const isGiven = (token: string | null): boolean =>
    token !== null &&
    encodings.some((encoding) => timingSafeEqual(digest(Buffer.from(token, encoding)), given));
  const [isAll, isRead, isMetrics] = [tokens.token, tokens.readToken, tokens.metricsToken].map(isGiven);
  if (isAll) return 'write';
  if (isRead) return 'read';
  return isMetrics ? 'metrics' : null;
}

function digest(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest();
}
