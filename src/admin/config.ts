import type { ResolvedConfig, ResolvedKey, ResolvedModel, ResolvedUpstream } from '../config/resolve.js';
import type { Budget, Group, Price, RateLimits, SteppedRates, StoreSettings } from '../config/types.js';
import { formatAuthority } from '../wire/authority.js';
import { textInSlices } from '../wire/steps.js';
import { json } from './answer.js';
import { type AdminRoute, route } from './routes.js';

/** The operators' access to the config. */
export interface ConfigDesk {
  /** Absolute path of the file. Null for the demo, which has none. */
  readonly path: string | null;
  /** Number of configs that have been in force. */
  generation(): number;
  running(): ResolvedConfig;
  /**
   * Reads the file as a reload does.
   * @returns its problems, with paths in the file
   */
  check(): Promise<readonly string[]>;
}

/**
 * Routes `GET /config`, the running config without its secrets, and `POST /config/check`, which puts nothing in force.
 */
export function configRoutes(desk: ConfigDesk): readonly AdminRoute[] {
  return [
    route('GET', '/config', () => ({
      status: 200,
      contentType: 'application/json',
      body: textInSlices(configTexts(desk)),
    })),
    {
      method: 'POST',
      path: '/config/check',
      access: 'read',
      handle: async () => {
        const problems = await desk.check();
        return json(problems.length === 0 ? { ok: true } : { ok: false, problems });
      },
    },
  ];
}

/**
 * Writes the running config in the form of its file, with its defaults filled in, as a sequence of short texts.
 * Settings without a value or default are omitted. Keys, hashes, tokens, the secret, header values, user names and
 * passwords in URLs, and certificates are hidden, whether they come from the file or the environment.
 */
export function* configTexts(desk: ConfigDesk): Generator<string, void, undefined> {
  const config = desk.running();
  const said = { path: desk.path, generation: desk.generation() };
  const rest = { ...restView(config), groups: byName(config.groups, groupView) };
  yield `${JSON.stringify(said).slice(0, -1)},"config":${JSON.stringify(rest).slice(0, -1)},"models":{`;
  let comma = '';
  for (const model of config.models) {
    yield `${comma}${JSON.stringify(model.name)}:${JSON.stringify(modelView(model))}`;
    comma = ',';
  }
  yield '},"keys":[';
  comma = '';
  for (const key of config.keys) {
    yield `${comma}${JSON.stringify(keyView(key))}`;
    comma = ',';
  }
  yield ']}}\n';
}

/** Replaces values that operators must not see. */
export const hiddenText = '•••';

/* The views name every property, so a property added to the config later is not shown until it is named here. */

/** Everything except models, groups and keys, of which there may be thousands. */
function restView(config: ResolvedConfig): object {
  const { admin, outage, vendors } = config;
  return {
    listen: listenView(config.listen),
    admin: admin === null ? undefined : adminView(admin),
    workers: config.workers,
    store: storeView(config.store),
    outage: pick(outage, 'budgets', 'rates'),
    usage: settings(config.usage),
    videos: videosView(config.videos),
    unpriced: config.unpriced,
    conversations: config.conversations === null ? 'off' : settings(config.conversations),
    vendors: pick(vendors, 'vendorc', 'vendorg', 'vendork', 'vendorj'),
    limits: settings(config.limits),
    timeouts: settings(config.timeouts),
    routing: settings(config.routing),
    sockets: settings(config.sockets),
    fetch: fetchView(config.fetch),
    secret: config.secret.given ? hiddenText : undefined,
    defaultModels: config.defaultModels,
    upstreams: byName(config.upstreams, upstreamView),
  };
}

/** Returns the named properties of an object, except for those that are null or missing. Returns undefined for null. */
function pick<Source extends object>(
  source: Source | null,
  ...names: readonly (keyof Source)[]
): object | undefined {
  if (source === null) return undefined;
  const given = names.filter((name) => source[name] !== null && source[name] !== undefined);
  return Object.fromEntries(given.map((name) => [name, source[name]]));
}

function groupView(group: Group): object {
  return {
    models: group.models,
    limits: limitsView(group.limits),
    budget: budgetView(group.budget),
    ...pick(group, 'priceFactor', 'shareVideos'),
  };
}

function videosView(videos: ResolvedConfig['videos']): object | undefined {
  if (videos === null) return undefined;
  const { folder, ...numbers } = videos;
  return { folder, ...settings(numbers) };
}

function adminView({ host, port, readToken, metricsToken }: NonNullable<ResolvedConfig['admin']>): object {
  return {
    host,
    port,
    token: hiddenText,
    readToken: readToken === null ? undefined : hiddenText,
    metricsToken: metricsToken === null ? undefined : hiddenText,
  };
}

function fetchView({ ports, denyNetworks, denyHosts, proxy }: ResolvedConfig['fetch']): object {
  return {
    ...proxyView(proxy),
    ports: ports.map(([first, last]) => (first === last ? first : `${first}-${last}`)),
    denyNetworks: denyNetworks.map(({ address, prefix }) => `${address}/${prefix}`),
    denyHosts,
  };
}

function proxyView(proxy: ResolvedUpstream['proxy']): object {
  if (proxy === null) return {};
  const { secure, host, port, authorization, ca } = proxy;
  const user = authorization === null ? '' : `${hiddenText}@`;
  const address = formatAuthority(host, port);
  return {
    proxy: `${secure ? 'https' : 'http'}://${user}${address}`,
    proxyCa: ca === null ? undefined : hiddenText,
  };
}

/** Accepts only numbers and booleans, which are shown as they are. Strings have to be named one by one. */
function settings<Settings extends Readonly<Record<keyof Settings, number | boolean>>>(
  source: Settings,
): Settings {
  return source;
}

function byName<Item extends { readonly name: string }>(
  items: readonly Item[],
  view: (item: Item) => object,
): object {
  return Object.fromEntries(items.map((item) => [item.name, view(item)]));
}

function listenView({ host, port, tls, cors, trustedProxies, publicUrl }: ResolvedConfig['listen']): object {
  return {
    host,
    port,
    tls: tls === null ? undefined : { cert: tls.cert, key: tls.key },
    cors: pick(cors, 'origins', 'maxAgeSeconds'),
    trustedProxies: trustedProxies?.map(({ address, prefix }) => `${address}/${prefix}`),
    publicUrl: publicUrl?.replace(/\/\/[^/]*@/, `//${hiddenText}@`),
  };
}

function storeView(store: StoreSettings): object {
  const { kind, taskDays } = store;
  if (store.kind === 'embedded') return { kind, path: store.path, taskDays };
  const { host, port, database, username, tls, schema, timeoutMs } = store;
  const isSocket = host.startsWith('/');
  const address = isSocket ? '' : formatAuthority(host, port);
  const parameters = [
    ...(isSocket ? [`host=${host}`] : []),
    ...(tls === 'off' ? [] : [`sslmode=${sslModes[tls]}`]),
  ];
  // Some services use the user name as the whole secret.
  const path = database === username ? '' : encodeURIComponent(database);
  const query = parameters.length === 0 ? '' : `?${parameters.join('&')}`;
  return { kind, url: `postgres://${hiddenText}@${address}/${path}${query}`, schema, timeoutMs, taskDays };
}

const sslModes = { on: 'require', verified: 'verify-full' } as const;

function upstreamView(upstream: ResolvedUpstream): object {
  const { ca, clientCertificate } = upstream.tls;
  const isSecure = upstream.baseUrl !== null && /^https:/i.test(upstream.baseUrl);
  const shown = clientCertificate === null ? undefined : hiddenText;
  const tls = {
    ca: ca === null ? undefined : hiddenText,
    cert: shown,
    key: shown,
    ...pick(upstream.tls, 'verify', 'serverName'),
  };
  return {
    ...pick(upstream, 'kind', 'baseUrl'),
    apiKeys: upstream.apiKeys.map(() => hiddenText),
    ...pick(upstream, 'keyHeader', 'query'),
    headers: Object.fromEntries(upstream.headers.map(([name]) => [name, hiddenText])),
    ...pick(upstream, 'forwardHeaders', 'returnHeaders', 'preset'),
    rules: rulesView(upstream.rules),
    tls: isSecure ? tls : undefined,
    ...proxyView(upstream.proxy),
    ...pick(upstream, 'injectUsage', 'onLeave', 'responsesSocket', 'fetchPrivate', 'allowMembers'),
    ...pick(upstream, 'maxConnections', 'maxWaiting'),
  };
}

function modelView(model: ResolvedModel): object {
  const { protocols, targets, price, limits, budget, tokens } = model;
  return {
    protocols,
    targets: targets.map(({ translation, ...target }) => ({
      ...pick(target, 'upstream', 'model', 'responses', 'images'),
      translation: {
        ...pick(translation, 'maxTokens', 'maxTokensField'),
        thinking: translation.thinking,
        ...pick(
          translation,
          'jsonSchema',
          'customTools',
          'topK',
          'promptCaching',
          'threads',
          'unsignedThinking',
          'systemMessages',
          'preservedThinking',
          'forcedCalls',
          'encryptedReasoning',
          'search',
        ),
        ...pick(translation, 'hostedTools', 'cacheBreakpoints'),
      },
      preset: target.preset ?? undefined,
      rules: rulesView(target.rules),
      ...pick(target, 'priority', 'weight', 'firstTokenMs'),
      cost: priceView(target.cost),
    })),
    price: priceView(price),
    limits: limitsView(limits),
    budget: budgetView(budget),
    inputTokens: tokens.input ?? undefined,
    outputTokens: tokens.output ?? undefined,
    ...pick(model, 'firstTokenMs', 'hedgeMs'),
  };
}

type Rules = ResolvedUpstream['rules'];

/** Rules in the form of a file. Presets are shown by name. */
function rulesView(rules: Rules): object | undefined {
  if (rules === null) return undefined;
  const { headers } = rules;
  return {
    ...pick(rules, 'drop', 'keep', 'set', 'rename', 'clamp', 'efforts', 'roles', 'sampling', 'thinking'),
    ...pick(rules, 'fillReasoning'),
    headers:
      headers === undefined
        ? undefined
        : { ...pick(headers, 'pass'), set: hiddenValues(headers.set), ...pick(headers, 'drop') },
    ...pick(rules, 'betas'),
  };
}

function hiddenValues(headers: Readonly<Record<string, string>> | undefined): object | undefined {
  if (headers === undefined) return undefined;
  return Object.fromEntries(Object.keys(headers).map((name) => [name, hiddenText]));
}

function keyView({ id, groups, limits, budget, mayRoute, expiresAt }: ResolvedKey): object {
  return {
    id,
    hash: hiddenText,
    groups,
    limits: limitsView(limits),
    mayRoute,
    budget: budgetView(budget),
    expiresAt: expiresAt === null ? undefined : new Date(expiresAt).toISOString(),
  };
}

function budgetView(budget: Budget | null): object | undefined {
  return pick(budget, 'usd', 'per');
}

function priceView(price: Price | null): object | undefined {
  if (price === null) return undefined;
  const { images, seconds, tiers, geos } = price;
  return {
    ...ratesView(price),
    images: images.length === 0 ? undefined : images.map((image) => pick(image, 'size', 'quality', 'usd')),
    seconds: seconds.length === 0 ? undefined : seconds.map(({ resolution, usd }) => ({ resolution, usd })),
    tiers: Object.keys(tiers).length === 0 ? undefined : tiersView(tiers),
    geos: Object.keys(geos).length === 0 ? undefined : geos,
  };
}

function ratesView({ rates, steps }: SteppedRates): object {
  if (steps.length === 0) return settings(rates);
  return {
    ...settings(rates),
    steps: steps.map((step) => ({ aboveInput: step.above, ...settings(step.rates) })),
  };
}

function tiersView(tiers: Price['tiers']): object {
  return Object.fromEntries(
    Object.entries(tiers).map(([name, tier]) => [name, typeof tier === 'number' ? tier : ratesView(tier)]),
  );
}

function limitsView(limits: RateLimits | null): object | undefined {
  return pick(limits, 'requestsPerMinute', 'tokensPerMinute', 'concurrent');
}
