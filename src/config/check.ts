import { type ConfigFiles, pairProblem } from './files.js';
import { parseNetwork } from './networks.js';
import type { Problem } from './problem.js';
import { createReport, propertiesOf, propertyOf, type Report, textsOf } from './report.js';
import { defaults } from './resolve.js';
import { servableProtocols } from './servable.js';
import { checkStore } from './store-check.js';
import { type Protocol, protocols, type UpstreamKind, upstreamKinds } from './types.js';
import { checkUpstream } from './upstream-check.js';

const longestName = 256;

/**
 * Checks what joins two places of a config file, and the files that it names. It takes any value: whatever has not
 * the right shape is passed over, because the schema speaks of it, and so one run finds every problem.
 */
export function crossProblems(
  file: unknown,
  options: { readonly files: ConfigFiles; readonly hidden: ReadonlySet<string> },
): readonly Problem[] {
  const report = createReport(options.hidden);
  for (const section of ['upstreams', 'models', 'groups']) checkNames(report, file, section);
  checkListen(report, propertyOf(file, 'listen'), options.files);
  checkVendors(report, propertyOf(file, 'vendors'));
  checkLimits(report, propertyOf(file, 'limits'));
  checkStore(report, propertyOf(file, 'store'));
  const upstreams = new Map(propertiesOf(propertyOf(file, 'upstreams')));
  for (const [name, upstream] of upstreams) checkUpstream(report, name, upstream, options.files);
  for (const [name, model] of propertiesOf(propertyOf(file, 'models'))) {
    checkModel(report, name, model, upstreams);
  }
  const models = new Set(propertiesOf(propertyOf(file, 'models')).map(([name]) => name));
  for (const [name, group] of propertiesOf(propertyOf(file, 'groups'))) {
    for (const [index, model] of textsOf(propertyOf(group, 'models'))) {
      if (model === '*' || model === '' || models.has(model)) continue;
      report.addUnknown(['groups', name, 'models', index], 'model', model, models);
    }
  }
  checkKeys(
    report,
    propertyOf(file, 'keys'),
    new Set(propertiesOf(propertyOf(file, 'groups')).map(([g]) => g)),
  );
  return report.problems;
}

function hasControlCharacter(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x20 || code === 0x7f) return true;
  }
  return false;
}

function checkNames(report: Report, file: unknown, section: string): void {
  for (const [name] of propertiesOf(propertyOf(file, section))) {
    if (name === '' || name.length > longestName || hasControlCharacter(name)) {
      report.add([section, name], `a name has 1 to ${longestName} characters and no control characters`);
    } else if (section === 'models' && name === '*') {
      report.add([section, name], '"*" means every model and cannot be the name of one');
    }
  }
}

function checkListen(report: Report, listen: unknown, files: ConfigFiles): void {
  for (const [index, text] of textsOf(propertyOf(listen, 'trustedProxies'))) {
    if (text === '' || parseNetwork(text) !== null) continue;
    report.add(
      ['listen', 'trustedProxies', index],
      'must be an address or a network such as "10.0.0.0/8" or "fd00::/8"',
    );
  }
  const tls = propertyOf(listen, 'tls');
  const [cert, key] = ['cert', 'key'].map((part) => {
    const path = propertyOf(tls, part);
    if (typeof path !== 'string' || path === '') return null;
    const { text, problem } = files.read(path);
    if (problem !== null) report.add(['listen', 'tls', part], problem);
    return text;
  });
  if (typeof cert !== 'string' || typeof key !== 'string') return;
  const problem = pairProblem(cert, key);
  if (problem !== null) report.add(['listen', 'tls'], problem);
}

/** A vendor's word becomes a path segment or part of a header name: it must mean one vendor and no path of ours. */
function checkVendors(report: Report, vendors: unknown): void {
  const owners = new Map<string, string>(
    ['v1', 'v1beta', 'v2', 'vendorc', 'vendorg', 'vendork', 'vendorj'].map((word) => [
      word,
      'the gateway itself',
    ]),
  );
  const given = new Map(propertiesOf(vendors));
  for (const vendor of ['vendorc', 'vendorg', 'vendork', 'vendorj'] as const) {
    for (const [index, word] of textsOf(given.get(vendor) ?? defaults.vendors[vendor])) {
      const owner = owners.get(word);
      if (owner !== undefined) {
        const path = given.has(vendor) ? ['vendors', vendor, index] : ['vendors'];
        report.add(path, `a word of ${vendor} is used by ${owner}`);
      }
      owners.set(word, vendor);
    }
  }
}

function checkLimits(report: Report, limits: unknown): void {
  const read = (name: 'bodyBytes' | 'bufferedBytes'): number => {
    const value = propertyOf(limits, name);
    return typeof value === 'number' ? value : defaults.limits[name];
  };
  if (read('bufferedBytes') < read('bodyBytes')) {
    report.add(
      ['limits', 'bufferedBytes'],
      'must be at least bodyBytes, or the largest body can never be held',
    );
  }
}

function checkModel(report: Report, name: string, model: unknown, upstreams: Map<string, unknown>): void {
  const offered = textsOf(propertyOf(model, 'protocols'))
    .map(([, protocol]) => protocol)
    .filter((protocol): protocol is Protocol => protocols.some((known) => known === protocol));
  const targets = propertyOf(model, 'targets');
  if (!Array.isArray(targets) || upstreams.size === 0) return;
  targets.forEach((target: unknown, index) => {
    const upstream = propertyOf(target, 'upstream');
    if (typeof upstream !== 'string' || upstream === '') return;
    const path = ['models', name, 'targets', index, 'upstream'];
    if (!upstreams.has(upstream)) {
      report.addUnknown(path, 'upstream', upstream, upstreams.keys());
      return;
    }
    const kind = propertyOf(upstreams.get(upstream), 'kind');
    if (isResponsesTarget(target) && kind !== 'chat' && kind !== 'simulator') {
      report.add(
        ['models', name, 'targets', index, 'responses'],
        'only an upstream of kind chat can take responses calls as they come',
      );
    }
    if (!upstreamKinds.some((known) => known === kind)) return;
    const servable = servableProtocols(kind as UpstreamKind);
    const missing = offered.filter((protocol) => !servable.has(protocol));
    if (missing.length > 0) {
      const serves = [...servable].join(', ');
      report.add(
        path,
        `an upstream of kind ${String(kind)} cannot serve ${missing.join(', ')} (it serves ${serves})`,
      );
    }
  });
}

function isResponsesTarget(target: unknown): boolean {
  const responses = propertyOf(target, 'responses');
  return responses === true || responses === 'only';
}

/** RFC 3339 section 5.6, without leap seconds. */
const dateTime = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/;

function checkKeys(report: Report, keys: unknown, groups: ReadonlySet<string>): void {
  if (!Array.isArray(keys)) return;
  const firstWith = { id: new Map<string, number>(), hash: new Map<string, number>() };
  keys.forEach((key: unknown, index) => {
    for (const property of ['id', 'hash'] as const) {
      const value = propertyOf(key, property);
      if (typeof value !== 'string' || value === '') continue;
      const text = property === 'hash' ? value.toLowerCase() : value;
      const first = firstWith[property].get(text);
      if (first === undefined) firstWith[property].set(text, index);
      else report.add(['keys', index, property], `is the same as keys[${first}].${property}`);
    }
    for (const [at, group] of textsOf(propertyOf(key, 'groups'))) {
      if (group === '' || groups.has(group)) continue;
      report.addUnknown(['keys', index, 'groups', at], 'group', group, groups);
    }
    const expiresAt = propertyOf(key, 'expiresAt');
    if (typeof expiresAt !== 'string' || expiresAt === '') return;
    if (!dateTime.test(expiresAt) || !isRealDate(expiresAt)) {
      report.add(['keys', index, 'expiresAt'], 'must be a date and time such as 2027-01-01T00:00:00Z');
    }
  });
}

/** `Date.parse` rolls some days over that do not exist, such as the 30th of February. */
function isRealDate(text: string): boolean {
  if (Number.isNaN(Date.parse(text))) return false;
  const day = new Date(`${text.slice(0, 10)}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text.slice(0, 10));
}
