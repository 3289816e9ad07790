import { readDateTime } from '../wire/date-time.js';
import { isObject } from '../wire/json.js';
import { checkRules } from './check-rules.js';
import { type ConfigFiles, codeText, isKeyOf, pairProblem } from './files.js';
import { isCredential, passHeaderProblem, refusedHeaders, returnHeaderProblem, token } from './headers.js';
import { isOneAddress, parseHostPattern, parseNetwork, portRange } from './networks.js';
import { createReport, type Problem, propertiesOf, propertyOf, type Report, textsOf } from './problem.js';
import { parseProxyUrl } from './proxy.js';
import { defaults } from './resolve.js';
import { parsePostgresUrl } from './store-settings.js';
import type { Protocol, UpstreamKind } from './types.js';
import { kindTraits, servableProtocols } from './upstream-kinds.js';
import { protocols, upstreamKinds } from './words.js';

const longestName = 256;
const loneSurrogate = /\p{Surrogate}/u;

/**
 * Checks what concerns two places of a config file, and the files that it names. Accepts any value and skips whatever
 * has the wrong shape, because the schema reports that. So one run finds every problem.
 */
export function crossProblems(
  file: unknown,
  options: { readonly files: ConfigFiles; readonly hidden: ReadonlySet<string> },
): readonly Problem[] {
  const report = createReport(options.hidden);
  for (const section of ['upstreams', 'models', 'groups']) checkNames(report, file, section);
  checkListen(report, propertyOf(file, 'listen'), options.files);
  checkVendors(report, propertyOf(file, 'vendors'));
  checkFetch(report, propertyOf(file, 'fetch'), options.files);
  checkBounds(report, file);
  checkStore(report, propertyOf(file, 'store'));
  checkSecret(report, file);
  checkTokens(report, propertyOf(file, 'admin'));
  checkAdminPort(report, file);
  const given = propertyOf(file, 'upstreams');
  const upstreams = new Map(propertiesOf(given));
  // If the section itself is missing or not an object, that is the problem, not every target that names an upstream.
  const areKnown = isObject(given);
  for (const [name, upstream] of upstreams) checkUpstream(report, name, upstream, options.files);
  for (const [name, model] of propertiesOf(propertyOf(file, 'models'))) {
    checkModel(report, name, model, areKnown ? upstreams : null);
  }
  const models = new Set(propertiesOf(propertyOf(file, 'models')).map(([name]) => name));
  for (const [protocol, model] of propertiesOf(propertyOf(file, 'defaultModels')))
    if (typeof model === 'string' && model !== '' && !models.has(model))
      report.addUnknown(['defaultModels', protocol], 'model', model, models);
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

/** Returns the problem of a name, which may become part of a path or a form at an upstream, or null. */
function nameProblem(name: string): string | null {
  if (name === '' || name.length > longestName || hasControlCharacter(name))
    return `a name has 1 to ${longestName} characters and no control characters`;
  return loneSurrogate.test(name) ? 'a name has no half of a surrogate pair' : null;
}

function checkNames(report: Report, file: unknown, section: string): void {
  for (const [name] of propertiesOf(propertyOf(file, section))) {
    const problem = nameProblem(name);
    if (problem !== null) {
      report.add([section, name], problem);
    } else if (section === 'models' && name === '*') {
      report.add([section, name], '"*" means every model and cannot be the name of one');
    }
  }
}

function checkListen(report: Report, listen: unknown, files: ConfigFiles): void {
  checkTexts(report, ['listen', 'trustedProxies'], listen, networkForm);
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

/**
 * Checks that each vendor's word, which becomes a path segment or part of a header name, belongs to one vendor only and
 * is not one of the gateway's own path segments.
 */
function checkVendors(report: Report, vendors: unknown): void {
  const owners = new Map<string, string>(
    [
      ...['v1', 'v1alpha', 'v1beta', 'v1beta1', 'v2', 'openai'],
      ...['vendorc', 'vendorg', 'vendork', 'vendorj'],
    ].map((word) => [word, 'the gateway itself']),
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

type Bound = readonly [
  section: string,
  setting: string,
  than: 'at least' | 'at most',
  other: string,
  reason: string,
];

const bodyFits = 'or the largest body can never be held';
const messageFits = 'or the largest message can never be held';
const allKeys = 'which all keys together may hold';

/** Numbers of one section that bound each other. */
const bounds: readonly Bound[] = [
  ['limits', 'bufferedBytes', 'at least', 'bodyBytes', bodyFits],
  ['limits', 'bufferedBytesPerKey', 'at least', 'bodyBytes', bodyFits],
  ['limits', 'bufferedBytesPerKey', 'at most', 'bufferedBytes', allKeys],
  ['sockets', 'heldBytes', 'at least', 'messageBytes', messageFits],
  ['sockets', 'heldBytesPerKey', 'at least', 'messageBytes', messageFits],
  ['sockets', 'heldBytesPerKey', 'at most', 'heldBytes', allKeys],
  ['conversations', 'recordBytes', 'at most', 'keyBytes', 'which all turns of a key share'],
  ['conversations', 'keyBytes', 'at most', 'bytes', 'which all keys share'],
  ['videos', 'fileBytes', 'at most', 'bytes', 'which all videos share'],
];
/** Not compared if it is not given, because its default depends on `messageBytes`. */
const derived = 'heldBytes';

function checkBounds(report: Report, file: unknown): void {
  for (const [section, setting, than, other, reason] of bounds) {
    const [value, bound] = [setting, other].map((name) => {
      const given = propertyOf(propertyOf(file, section), name);
      if (typeof given === 'number') return given;
      const usual = name === derived ? undefined : propertyOf(propertyOf(defaults, section), name);
      return typeof usual === 'number' ? usual : null;
    });
    if (value == null || bound == null) continue;
    if (than === 'at least' ? value < bound : value > bound)
      report.add([section, setting], `must be ${than} ${other}, ${reason}`);
  }
}

function checkFetch(report: Report, fetch: unknown, files: ConfigFiles): void {
  checkProxy(report, ['fetch'], fetch, files);
  checkTexts(report, ['fetch', 'ports'], fetch, portsForm);
  checkTexts(report, ['fetch', 'denyNetworks'], fetch, networkForm);
  checkTexts(report, ['fetch', 'denyHosts'], fetch, hostForm);
}

/** Form of the strings in a list. */
interface TextForm {
  readonly words: string;
  has(text: string): boolean;
}

const networkForm: TextForm = {
  words: 'must be an address or a network such as "10.0.0.0/8" or "fd00::/8"',
  has: (text) => parseNetwork(text) !== null,
};
const hostForm: TextForm = {
  words:
    'must be a name such as "files.example.com", or "*.example.com" for all below it; addresses go into denyNetworks',
  has: (text) => parseHostPattern(text) !== null,
};
const portsForm: TextForm = {
  words: 'must go from a port to one that is not lower, both from 1 to 65535',
  has(text) {
    const [first, last] = portRange(text);
    return !/^\d{1,5}-\d{1,5}$/.test(text) || (first >= 1 && first <= last && last <= 65_535);
  },
};

function checkTexts(
  report: Report,
  [section, list]: readonly [section: string, list: string],
  holder: unknown,
  { words, has }: TextForm,
): void {
  for (const [index, text] of textsOf(propertyOf(holder, list)))
    if (text !== '' && !has(text)) report.add([section, list, index], words);
}

function checkModel(
  report: Report,
  name: string,
  model: unknown,
  upstreams: Map<string, unknown> | null,
): void {
  const offered = textsOf(propertyOf(model, 'protocols'))
    .map(([, protocol]) => protocol)
    .filter((protocol): protocol is Protocol => protocols.some((known) => known === protocol));
  const targets = propertyOf(model, 'targets');
  if (!Array.isArray(targets) || upstreams === null) return;
  targets.forEach((target: unknown, index) => {
    const upstream = propertyOf(target, 'upstream');
    if (typeof upstream !== 'string' || upstream === '') return;
    const path = ['models', name, 'targets', index, 'upstream'];
    if (!upstreams.has(upstream)) {
      report.addUnknown(path, 'upstream', upstream, upstreams.keys());
      return;
    }
    const kind = kindOf(upstreams.get(upstream));
    checkTargetName(report, name, { target, index, kind });
    checkRules(report, target, {
      path: ['models', name, 'targets', index],
      kind,
      protocols: offered,
      responses: propertyOf(target, 'responses'),
      keyHeader: propertyOf(upstreams.get(upstream), 'keyHeader'),
    });
    const isOpenaiCompatible = kind !== undefined && kindTraits[kind].isOpenaiCompatible;
    if (isResponsesTarget(target) && !isOpenaiCompatible) {
      report.add(
        ['models', name, 'targets', index, 'responses'],
        'only an upstream of kind chat can take responses calls as they come',
      );
    }
    if (kind === undefined) return;
    const servable = servableProtocols(kind);
    const missing = offered.filter((protocol) => !servable.has(protocol));
    if (missing.length > 0) {
      const serves = [...servable].join(', ');
      report.add(
        path,
        `an upstream of kind ${kind} cannot serve ${missing.join(', ')} (it serves ${serves})`,
      );
    }
  });
}

/** Returns the kind of an upstream in a config file, or undefined for anything else, which the schema reports. */
function kindOf(upstream: unknown): UpstreamKind | undefined {
  const kind = propertyOf(upstream, 'kind');
  return upstreamKinds.find((known) => known === kind);
}

/** Checks a target's model name. If it is part of the path at the upstream, it must not lead to another path. */
function checkTargetName(
  report: Report,
  model: string,
  {
    target,
    index,
    kind,
  }: { readonly target: unknown; readonly index: number; readonly kind: UpstreamKind | undefined },
): void {
  const given = propertyOf(target, 'model');
  const name = typeof given === 'string' ? given : model;
  const path = given === undefined ? ['models', model] : ['models', model, 'targets', index, 'model'];
  const problem = given === undefined || name === '' ? null : nameProblem(name);
  const isInPath = kind !== undefined && kindTraits[kind].hasModelInPath;
  if (problem !== null) report.add(path, problem);
  else if (isInPath && name.split(/[/\\]/).some((part) => noSegments.has(part)))
    report.add(path, 'is part of a path at its upstream: "", "." and ".." may not stand between its slashes');
}

const noSegments: ReadonlySet<string> = new Set(['', '.', '..']);

function isResponsesTarget(target: unknown): boolean {
  const responses = propertyOf(target, 'responses');
  return responses === true || responses === 'only';
}

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
    if (readDateTime(expiresAt) === null)
      report.add(['keys', index, 'expiresAt'], 'must be a date and time such as 2027-01-01T00:00:00Z');
  });
}

/** The settings that only one kind of store has. */
const settingsOf = { embedded: ['path'], postgres: ['url', 'schema', 'timeoutMs'] } as const;

const movedFromRedis =
  'Redis is no kind any more: use postgres, and move what there is with "model-gateway store export --redis URL" and "model-gateway store import"';

/** Checks what the schema cannot express about the store. */
function checkStore(report: Report, store: unknown): void {
  const kind = propertyOf(store, 'kind');
  if (kind === 'redis') report.add(['store'], movedFromRedis);
  if (kind !== 'embedded' && kind !== 'postgres') return;
  const other = kind === 'embedded' ? 'postgres' : 'embedded';
  for (const name of settingsOf[other]) {
    if (propertyOf(store, name) !== undefined) {
      report.add(['store', name], `only a store of kind ${other} has it`);
    }
  }
  if (kind === 'postgres') checkPostgres(report, store);
}

/**
 * Requires a secret for a shared store, because clients carry sealed data from one host to another. An embedded store
 * belongs to one host.
 */
function checkSecret(report: Report, file: unknown): void {
  const kind = propertyOf(propertyOf(file, 'store'), 'kind');
  if (typeof kind !== 'string' || kind === 'embedded' || propertyOf(file, 'secret') !== undefined) return;
  report.add(
    ['secret'],
    'is required where hosts share a store: each would make up one of its own, and refuse what another has sealed',
  );
}

/** Checks that the tokens differ. Otherwise the holder of one could do more than intended. */
function checkTokens(report: Report, admin: unknown): void {
  const owners = new Map<unknown, string>();
  for (const name of ['token', 'readToken', 'metricsToken']) {
    const value = propertyOf(admin, name);
    if (typeof value !== 'string') continue;
    const owner = owners.get(value);
    if (owner !== undefined) report.add(['admin', name], `is the same as admin.${owner}`);
    else owners.set(value, name);
  }
}

/** Compares the ports that the file names. `--port` is known only at the start. */
function checkAdminPort(report: Report, file: unknown): void {
  const [listen, admin] = [propertyOf(file, 'listen'), propertyOf(file, 'admin')];
  const port = propertyOf(admin, 'port');
  if (port === undefined || port === 0 || port !== propertyOf(listen, 'port')) return;
  if (isOneAddress(hostOf(listen), hostOf(admin)))
    report.add(['admin', 'port'], 'is listen.port, where clients are served; name another');
}

/** Returns the host of a listener in the file, empty if it is not a string. */
function hostOf(listener: unknown): string {
  const host = propertyOf(listener, 'host') ?? defaults.host;
  return typeof host === 'string' ? host : '';
}

function checkPostgres(report: Report, store: unknown): void {
  const url = propertyOf(store, 'url');
  if (url === undefined) report.add(['store', 'url'], 'is required');
  if (typeof url !== 'string' || url === '') return;
  const address = parsePostgresUrl(url);
  if ('problem' in address) report.add(['store', 'url'], address.problem);
}

/** Checks what the schema cannot express about an upstream. */
function checkUpstream(report: Report, name: string, upstream: unknown, files: ConfigFiles): void {
  const at = (...rest: (string | number)[]): (string | number)[] => ['upstreams', name, ...rest];
  checkRules(report, upstream, {
    path: at(),
    kind: kindOf(upstream),
    protocols: null,
    responses: undefined,
    keyHeader: propertyOf(upstream, 'keyHeader'),
  });
  const baseUrl = propertyOf(upstream, 'baseUrl');
  const tls = propertyOf(upstream, 'tls');
  if (propertyOf(upstream, 'kind') === 'simulator') {
    for (const property of ['baseUrl', 'tls', 'proxy', 'proxyCa']) {
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
  checkClientCertificate(report, at('tls'), tls, files);
  checkProxy(report, at(), upstream, files);
  const seen = new Set<string>();
  for (const [field] of propertiesOf(propertyOf(upstream, 'headers'))) {
    const lower = field.toLowerCase();
    const reason = refusedHeaders.get(lower);
    if (!token.test(field)) report.add(at('headers', field), 'is not a valid header name');
    else if (reason !== undefined) report.add(at('headers', field), `may not be set here: ${reason}`);
    else if (lower === propertyOf(upstream, 'keyHeader'))
      report.add(at('headers', field), 'is where apiKeys are sent');
    else if (seen.has(lower)) report.add(at('headers', field), 'is given twice in different cases');
    seen.add(lower);
  }
  for (const [name] of propertiesOf(propertyOf(upstream, 'query')))
    if (isCredential(name.toLowerCase()))
      report.add(
        at('query', name),
        'may not be set here: it is called like a credential; put it into apiKeys',
      );
  checkHeaderNames(report, upstream, at, {
    list: 'forwardHeaders',
    reasonAgainst: passHeaderProblem,
    verb: 'passed',
  });
  checkHeaderNames(report, upstream, at, {
    list: 'returnHeaders',
    reasonAgainst: returnHeaderProblem,
    verb: 'handed on',
  });
}

interface NameCheck {
  readonly list: string;
  /** @param name in lower case */
  reasonAgainst(name: string): string | null;
  readonly verb: string;
}

function checkHeaderNames(
  report: Report,
  upstream: unknown,
  at: (...path: (string | number)[]) => (string | number)[],
  { list, reasonAgainst, verb }: NameCheck,
): void {
  for (const [index, field] of textsOf(propertyOf(upstream, list))) {
    if (field === '') continue;
    const reason = reasonAgainst(field.toLowerCase());
    if (!token.test(field)) report.add(at(list, index), 'is not a valid header name');
    else if (reason !== null) report.add(at(list, index), `may not be ${verb}: ${reason}`);
  }
}

function checkClientCertificate(
  report: Report,
  at: (string | number)[],
  tls: unknown,
  files: ConfigFiles,
): void {
  const [cert, key] = [propertyOf(tls, 'cert'), propertyOf(tls, 'key')];
  if (cert !== undefined && key === undefined) report.add([...at, 'key'], 'is required beside cert');
  if (key !== undefined && cert === undefined) report.add([...at, 'cert'], 'is required beside key');
  const read = (name: string, value: unknown, kind: 'certificate' | 'privateKey'): string | null => {
    if (typeof value !== 'string' || value === '') return null;
    const { text, problem } = files[kind](value);
    if (problem !== null) report.add([...at, name], problem);
    return text;
  };
  const [certText, keyText] = [read('cert', cert, 'certificate'), read('key', key, 'privateKey')];
  if (certText === null || keyText === null) return;
  if (!isKeyOf(keyText, certText)) {
    report.add([...at, 'key'], 'is not the key of the certificate in cert');
    return;
  }
  const problem = pairProblem(certText, keyText);
  if (problem !== null) report.add(at, problem);
}

/** Checks `proxy` and `proxyCa` of an upstream or of `fetch`. */
function checkProxy(report: Report, at: (string | number)[], owner: unknown, files: ConfigFiles): void {
  const [proxy, ca] = [propertyOf(owner, 'proxy'), propertyOf(owner, 'proxyCa')];
  if (typeof proxy === 'string' && proxy !== '') {
    const address = parseProxyUrl(proxy);
    if ('problem' in address) report.add([...at, 'proxy'], address.problem);
  }
  if (ca === undefined) return;
  if (typeof proxy !== 'string' || !/^https:/i.test(proxy))
    report.add([...at, 'proxyCa'], 'needs an https proxy');
  if (typeof ca !== 'string' || ca === '') return;
  const { problem } = files.certificate(ca);
  if (problem !== null) report.add([...at, 'proxyCa'], problem);
}

/** Ends of the endpoint URLs in vendors' documents. A model's own path may have a tag after a colon. */
const operationPath =
  /(\/chat\/completions|(?<=\/v1)\/(?:completions|responses|messages|embeddings)|\/models\/[^/]+:(?:\w+Content|\w*predict|countTokens|\w+Predict))\/?$/;

function baseUrlProblem(baseUrl: string): string | null {
  if (!/^https?:\/\/[^\s\\]+$/i.test(baseUrl)) return 'must be an http:// or https:// URL';
  let url: URL;
  try {
    url = new URL(baseUrl);
  } catch (error) {
    return `is not a valid URL (${codeText(error)})`;
  }
  if (url.username !== '' || url.password !== '') return 'may not hold credentials; put them into apiKeys';
  if (baseUrl.includes('?')) return 'may not hold a query';
  if (baseUrl.includes('#')) return 'may not hold a fragment';
  const [, operation] = operationPath.exec(url.pathname) ?? [];
  if (operation !== undefined)
    return `is the URL of one operation; leave out ${JSON.stringify(operation)}, which is added to it`;
  return null;
}
