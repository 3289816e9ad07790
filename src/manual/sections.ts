import { createConfigFiles } from '../config/files.js';
import { presets } from '../config/presets.js';
import { defaults, resolveConfig } from '../config/resolve.js';
import { type ConfigFile, configSchema } from '../config/schema.js';
import { storeDefaults } from '../config/store-settings.js';
import { type ErrorKind, errorTable, GatewayError } from '../errors.js';
import { outcomeMeanings } from '../metrics/call-record.js';
import { counterFamilies, gaugeFamilies, histogramFamilies, primaryFamilies } from '../metrics/families.js';
import { createOperationWords } from '../openapi/operation-words.js';
import type { AuthStyle } from '../protocols/credentials/credentials.js';
import { anthropic, type ErrorFormat, google, openai } from '../protocols/error-formats/formats.js';
import { buildRoutes, type Route } from '../routes.js';
import { steeringMembers } from '../wire/routed-members.js';

/** What stands between a pair of markers in the manual: Markdown that is made from the code. */
const sections: Readonly<Record<string, () => string>> = {
  settings: settingsTable,
  routes: routesTable,
  errors: errorsTable,
  metrics: metricsTable,
  outcomes: outcomesTable,
  presets: presetsTable,
  'steering-members': () => steeringMembers.map((name) => code(name)).join(', '),
};

const marked = /(<!-- generated: ([a-z-]+) -->\n)[\s\S]*?(<!-- end of generated -->)/g;

/**
 * Puts what is made from the code between the markers of a page.
 * @throws {Error} for a marker that names no section
 */
export function fillSections(markdown: string): string {
  return markdown.replaceAll(marked, (_all, begin: string, name: string, end: string) => {
    const section = sections[name];
    if (section === undefined) throw new Error(`There is no generated section "${name}".`);
    return `${begin}\n${section()}\n\n${end}`;
  });
}

/** The names of all sections. */
export const sectionNames: readonly string[] = Object.keys(sections);

function table(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(columns), line(columns.map(() => '---')), ...rows.map(line)].join('\n');
}

const code = (text: string): string => `\`${text}\``;

/** What the manual reads of a JSON schema. */
interface SchemaNode {
  readonly type?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly patternProperties?: Readonly<Record<string, SchemaNode>>;
  readonly required?: readonly string[];
  readonly items?: SchemaNode;
  readonly anyOf?: readonly SchemaNode[];
  readonly enum?: readonly string[];
  readonly const?: unknown;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
}

interface Setting {
  /** As the manual writes it: `models.*.targets[].weight`. */
  readonly path: string;
  readonly node: SchemaNode;
  readonly isRequired: boolean;
}

/** Every setting of the config file that holds no others. */
function settings(): readonly Setting[] {
  const found: Setting[] = [];
  const walk = (path: string, node: SchemaNode, isRequired: boolean): void => {
    const entries = Object.values(node.patternProperties ?? {})[0];
    // One that is described as a whole is told apart elsewhere.
    if (node.properties !== undefined && node.description === undefined) {
      for (const [name, child] of Object.entries(node.properties)) {
        walk(path === '' ? name : `${path}.${name}`, child, node.required?.includes(name) ?? false);
      }
    } else if (entries?.properties !== undefined) walk(`${path}.*`, entries, isRequired);
    else if (node.items?.properties !== undefined && node.description === undefined)
      walk(`${path}[]`, node.items, isRequired);
    else {
      found.push({ path, node, isRequired });
      // Settings that may be switched off as a whole.
      const members = node.anyOf?.find(({ properties }) => properties !== undefined);
      if (members !== undefined) walk(path, members, false);
    }
  };
  walk('', configSchema as unknown as SchemaNode, true);
  return found;
}

/** One of everything, so that the defaults of each have a place. */
const smallest: ConfigFile = {
  listen: { cors: { origins: ['*'] } },
  admin: { token: 'sixteen-letters-' },
  upstreams: { '*': { kind: 'simulator' } },
  models: { '*': { protocols: ['chat'], targets: [{ upstream: '*' }] } },
  videos: { folder: 'videos' },
  groups: { '*': { models: [] } },
  keys: [],
};

/** Defaults that a resolved config holds in another form than its file. */
const otherwise: Readonly<Record<string, string>> = {
  'store.path': code(storeDefaults.path),
  'store.schema': code(storeDefaults.schema),
  'store.timeoutMs': String(storeDefaults.timeoutMs),
  'store.kind': code('embedded'),
  'upstreams.*.maxConnections': 'half of the open files, 1024 at least',
  'fetch.ports': code(JSON.stringify(defaults.fetch.ports.map(([first]) => first))),
  'models.*.targets[].model': 'the same name',
  'models.*.targets[].images': code('openai'),
  'models.*.targets[].translation.thinking': code('budget'),
  'upstreams.*.headers': code('{}'),
  secret: 'random at start',
};

function settingsTable(): string {
  const resolved = resolveConfig(smallest, createConfigFiles('/'), 0);
  const rows = settings().map(({ path, node, isRequired }) => {
    if (node.description === undefined) throw new Error(`The setting ${path} is not described.`);
    const fallback = otherwise[path] ?? shown(valueAt(resolved, path));
    return [code(path), allowed(node), isRequired ? 'required' : fallback, node.description];
  });
  return table(['setting', 'values', 'default', 'meaning'], rows);
}

function valueAt(resolved: unknown, path: string): unknown {
  let value = resolved;
  for (const name of path.replace('.*', '.0').replace('[]', '.0').split('.')) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = Reflect.get(value, name);
  }
  return value;
}

function shown(value: unknown): string {
  if (value === undefined || value === null) return 'none';
  if (typeof value === 'number') return String(value);
  return code(typeof value === 'string' ? value : JSON.stringify(value));
}

function allowed(node: SchemaNode): string {
  if (node.anyOf !== undefined) return node.anyOf.map(allowed).join(' or ');
  if (node.const !== undefined) return code(JSON.stringify(node.const));
  if (node.enum !== undefined) return node.enum.map((value) => code(value)).join(', ');
  if (node.type === 'array') return `list of ${node.items === undefined ? 'values' : allowed(node.items)}`;
  if (node.type === 'object') return isOfTexts(node) ? 'object of strings' : 'object';
  if (node.type === 'number' && isUnbounded(node)) return 'number';
  if (node.type !== 'integer' && node.type !== 'number') {
    return `${node.type}${(node.minLength ?? 0) > 1 ? ` of ${node.minLength} characters or more` : ''}`;
  }
  const from = node.exclusiveMinimum ?? node.minimum ?? 0;
  const kind = node.type === 'integer' ? 'whole number' : 'number';
  const begin = node.exclusiveMinimum === undefined ? `from ${from}` : `above ${from}`;
  return `${kind} ${begin}${node.maximum === undefined ? '' : ` to ${node.maximum}`}`;
}

function isOfTexts({ patternProperties = {} }: SchemaNode): boolean {
  const values = Object.values(patternProperties);
  return values.length > 0 && values.every(({ type }) => type === 'string');
}

function isUnbounded({ minimum, exclusiveMinimum, maximum }: SchemaNode): boolean {
  return minimum === undefined && exclusiveMinimum === undefined && maximum === undefined;
}

function presetsTable(): string {
  const rows = Object.entries(presets).map(([name, { kinds, models, rules, translation, sources }]) => [
    code(name),
    kinds.map(code).join(', '),
    models,
    Object.entries({ ...rules, ...translation })
      .map(([setting, value]) => `${code(setting)} ${code(JSON.stringify(value))}`)
      .join('; '),
    sources.map((url, index) => `[${index + 1}](${url})`).join(' '),
  ]);
  return table(['preset', 'upstreams of kind', 'for', 'rules and translation settings', 'sources'], rows);
}

const keyPlaces: Readonly<Record<AuthStyle, string>> = {
  bearer: 'bearer',
  messages: '`x-api-key` or bearer',
  generateContent: '`x-vendorg-api-key`, `key` of the query, or bearer',
  modelList: 'any of these',
  realtime: 'bearer or subprotocol',
};

const streams: Readonly<Record<Route['stream'], string>> = {
  asked: 'if the body requests it',
  byQuery: 'always',
  never: '',
};

function routesTable(): string {
  // Neutral words alone: the others are a setting.
  const wordsOf = createOperationWords({ vendorc: [], vendorg: [], vendork: [], vendorj: [] });
  const rows = buildRoutes({ vendorc: [], vendorg: [], vendork: [], vendorj: [] }).map((route) => [
    code(`${route.method} ${route.path}`),
    route.operation === 'unimplemented' ? 'Answers 501' : wordsOf(route).summary,
    route.protocol === null ? '' : code(route.protocol),
    keyPlaces[route.auth],
    streams[route.stream],
  ]);
  return table(['request', 'what it does', 'model offered in', 'key', 'stream'], rows);
}

type TextErrorFormat = Exclude<ErrorFormat['name'], 'kling' | 'jimeng'>;

/** The columns that say how the text protocols name an error. */
const errorColumns: Readonly<
  Record<TextErrorFormat, { readonly title: string; readonly format: ErrorFormat; readonly member: string }>
> = {
  openai: { title: '`type`', format: openai, member: 'type' },
  anthropic: { title: '`type` in messages', format: anthropic, member: 'type' },
  google: { title: '`status` in generateContent', format: google, member: 'status' },
};

function errorsTable(): string {
  const columns = Object.values(errorColumns);
  const nameOf = ({ format, member }: (typeof columns)[number], kind: ErrorKind): string => {
    const { error } = JSON.parse(format.errorBody(new GatewayError(kind), 'id')) as {
      readonly error: Readonly<Record<string, string>>;
    };
    return error[member] ?? '';
  };
  const rows = Object.entries(errorTable).map(([kind, { status, code: word, source, message }]) => [
    String(status),
    word === null ? '' : code(word),
    ...columns.map((column) => code(nameOf(column, kind as ErrorKind))),
    source,
    message,
  ]);
  rows.sort(([a], [b]) => Number(a) - Number(b));
  const titles = columns.map(({ title }) => title);
  return table(['status', '`code`', ...titles, 'at fault', 'default message'], rows);
}

function outcomesTable(): string {
  const rows = Object.entries(outcomeMeanings).map(([outcome, meaning]) => [code(outcome), meaning]);
  return table(['outcome', 'meaning'], rows);
}

function metricsTable(): string {
  const all = [
    ...Object.entries(counterFamilies).map(([name, family]) => ({ name, type: 'counter', ...family })),
    ...Object.entries(histogramFamilies).map(([name, family]) => ({ name, type: 'histogram', ...family })),
    ...Object.entries(gaugeFamilies).map(([name, family]) => ({ name, type: 'gauge', ...family })),
    ...Object.entries(primaryFamilies).map(([name, family]) => ({ name, ...family })),
  ];
  const rows = all.map(({ name, type, labels, help }) => [
    code(name),
    type,
    labels.map((label) => code(label)).join(', '),
    help,
  ]);
  return table(['metric', 'type', 'labels', 'what it counts or measures'], rows);
}
