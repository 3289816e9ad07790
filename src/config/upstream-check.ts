import { type ConfigFiles, errorCode } from './files.js';
import { propertiesOf, propertyOf, type Report } from './report.js';

/** RFC 9110 section 5.6.2. */
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** Headers that the gateway writes itself, by reason. */
const refusedHeaders = new Map<string, string>([
  ...['content-length', 'transfer-encoding', 'trailer', 'te', 'expect'].map(
    (name) => [name, 'it frames the message, which the gateway does'] as const,
  ),
  ...['connection', 'keep-alive', 'proxy-connection', 'upgrade'].map(
    (name) => [name, 'it belongs to one connection, which the gateway manages'] as const,
  ),
  ...['host', 'content-type', 'content-encoding', 'accept-encoding', 'x-request-id'].map(
    (name) => [name, 'the gateway sets it for each request'] as const,
  ),
  ...[
    'authorization',
    'proxy-authorization',
    'x-api-key',
    'x-goog-api-key',
    'x-vendorg-api-key',
    'cookie',
  ].map((name) => [name, 'it carries a credential; put it into apiKeys'] as const),
]);

/** Checks what the schema cannot say of one upstream. */
export function checkUpstream(report: Report, name: string, upstream: unknown, files: ConfigFiles): void {
  const at = (...rest: (string | number)[]): (string | number)[] => ['upstreams', name, ...rest];
  const baseUrl = propertyOf(upstream, 'baseUrl');
  const tls = propertyOf(upstream, 'tls');
  if (propertyOf(upstream, 'kind') === 'simulator') {
    for (const property of ['baseUrl', 'tls']) {
      if (propertyOf(upstream, property) !== undefined) {
        report.add(at(property), 'the simulator is built in and takes none');
      }
    }
    return;
  }
  if (baseUrl === undefined && propertyOf(upstream, 'kind') !== undefined) {
    report.add(at('baseUrl'), 'is required for every kind but simulator');
  }
  if (typeof baseUrl === 'string' && baseUrl !== '') {
    const problem = baseUrlProblem(baseUrl);
    if (problem !== null) report.add(at('baseUrl'), problem);
    else if (tls !== undefined && !/^https:/i.test(baseUrl)) report.add(at('tls'), 'needs an https baseUrl');
  }
  const ca = propertyOf(tls, 'ca');
  if (typeof ca === 'string' && ca !== '') {
    const { problem } = files.certificate(ca);
    if (problem !== null) report.add(at('tls', 'ca'), problem);
  }
  const seen = new Set<string>();
  for (const [field] of propertiesOf(propertyOf(upstream, 'headers'))) {
    const lower = field.toLowerCase();
    const reason = refusedHeaders.get(lower);
    if (!token.test(field)) report.add(at('headers', field), 'is not a valid header name');
    else if (reason !== undefined) report.add(at('headers', field), `may not be set here: ${reason}`);
    else if (seen.has(lower)) report.add(at('headers', field), 'is given twice in different cases');
    seen.add(lower);
  }
}

function baseUrlProblem(baseUrl: string): string | null {
  if (!/^https?:\/\/[^\s\\]+$/i.test(baseUrl)) return 'must be an http:// or https:// URL';
  let url: URL;
  try {
    url = new URL(baseUrl);
  } catch (error) {
    return `is not a valid URL (${errorCode(error)})`;
  }
  if (url.username !== '' || url.password !== '') return 'may not hold credentials; put them into apiKeys';
  if (baseUrl.includes('?')) return 'may not hold a query';
  if (baseUrl.includes('#')) return 'may not hold a fragment';
  return null;
}
