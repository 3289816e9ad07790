import { parseRedisUrl } from './redis-url.js';
import { propertyOf, type Report, textsOf } from './report.js';

/** The settings that only one kind of store has. */
const settingsOf = { embedded: ['path'], redis: ['url', 'cluster', 'prefix', 'timeoutMs'] } as const;

/** Checks what the schema cannot say of the store. */
export function checkStore(report: Report, store: unknown): void {
  const kind = propertyOf(store, 'kind');
  if (kind !== 'embedded' && kind !== 'redis') return;
  const other = kind === 'embedded' ? 'redis' : 'embedded';
  for (const name of settingsOf[other]) {
    if (propertyOf(store, name) !== undefined) {
      report.add(['store', name], `only a store of kind ${other} has it`);
    }
  }
  if (kind === 'redis') checkRedis(report, store);
}

function checkRedis(report: Report, store: unknown): void {
  const url = propertyOf(store, 'url');
  const cluster = propertyOf(store, 'cluster');
  if (url === undefined && cluster === undefined) {
    report.add(['store', 'url'], 'is required, or cluster in its place');
  }
  if (url !== undefined && cluster !== undefined) {
    report.add(['store', 'cluster'], 'cannot stand beside url: name one server or the nodes of a cluster');
  }
  if (typeof url === 'string' && url !== '') {
    const address = parseRedisUrl(url);
    if ('problem' in address) report.add(['store', 'url'], address.problem);
  }
  checkCluster(report, textsOf(cluster));
}

function checkCluster(report: Report, urls: readonly [number, string][]): void {
  let first: string | null = null;
  for (const [index, url] of urls) {
    if (url === '') continue;
    const path = ['store', 'cluster', index];
    const address = parseRedisUrl(url);
    if ('problem' in address) {
      report.add(path, address.problem);
      continue;
    }
    if (address.database !== 0) report.add(path, 'a cluster has no database but 0');
    const shared = JSON.stringify([address.tls, address.username, address.password]);
    first ??= shared;
    if (shared !== first)
      report.add(path, 'must have the scheme, the user and the password of the first node');
  }
}
