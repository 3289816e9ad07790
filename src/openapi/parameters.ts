import type { VendorWords } from '../config/types.js';
import type { AuthStyle } from '../protocols/credentials/credentials.js';
import type { Route } from '../routes.js';
import type { JsonSchema, Parameter, Reference } from './json-schema.js';

const string: JsonSchema = { type: 'string' };
const date: JsonSchema = { type: 'string', format: 'date', examples: ['2023-06-01'] };

const query = (name: string, description: string, schema: JsonSchema = string): Parameter => ({
  name,
  in: 'query',
  required: false,
  description,
  schema,
});
const header = (name: string, description: string, schema: JsonSchema = string): Parameter => ({
  ...query(name, description, schema),
  in: 'header',
});

const idempotencyKey = header(
  'idempotency-key',
  'A request with the key of one before, and the same body, is answered with the task of that one.',
);
const contentPages: Readonly<Record<string, Parameter>> = {
  pageSize: query('pageSize', 'Models on a page of the generateContent list; more than 1000 means 1000.', {
    type: 'integer',
    minimum: 0,
    default: 50,
  }),
  pageToken: query('pageToken', 'The `nextPageToken` of the page before, in the generateContent list.'),
};
const messagesPages: Readonly<Record<string, Parameter>> = {
  limit: query('limit', 'Models on a page of the messages list.', {
    type: 'integer',
    minimum: 1,
    maximum: 1000,
    default: 20,
  }),
  afterId: query('after_id', 'The last model of the page before, in the messages list.'),
  beforeId: query('before_id', 'The first model of the page after, in the messages list.'),
};

const itemPages: Readonly<Record<string, Parameter>> = {
  itemLimit: query('limit', 'Items on a page.', { type: 'integer', minimum: 1, maximum: 100, default: 20 }),
  itemOrder: query('order', 'Oldest first (`asc`) or newest first.', {
    type: 'string',
    enum: ['asc', 'desc'],
    default: 'desc',
  }),
  itemAfter: query('after', 'The last item of the page before.'),
};

/** Shared parameters, by the name under which operations refer to them. */
type SharedParameters = Readonly<Record<string, Parameter>>;

/** @param words real vendor words, each of which adds a header name */
export function describeParameters(words: VendorWords): SharedParameters {
  return {
    key: query('key', 'An API key, in place of a header.'),
    alt: query('alt', 'With `sse` the answer is an event stream, else a JSON array.', {
      type: 'string',
      examples: ['sse'],
    }),
    ...contentPages,
    ...messagesPages,
    ...itemPages,
    realtimeModel: query(
      'model',
      'The model of the session; without it the one of `defaultModels.realtime` in the config, and 400 where that is not set.',
    ),
    variant: query('variant', 'What to have of the task.', {
      type: 'string',
      enum: ['video', 'thumbnail', 'spritesheet'],
      default: 'video',
    }),
    range: header('range', 'A part of the file, such as `bytes=0-1023`.'),
    ifRange: header('if-range', 'The `etag` for which the range holds; of another file, all is sent.'),
    ifNoneMatch: header('if-none-match', 'The `etag` of what the client has; that is not sent again.'),
    idempotencyKey,
    action: {
      ...query('Action', 'What to do.', {
        type: 'string',
        enum: ['CVSync2AsyncSubmitTask', 'CVSync2AsyncGetResult'],
      }),
      required: true,
    },
    actionVersion: {
      ...query('Version', 'A date.', { type: 'string', format: 'date', examples: ['2022-08-31'] }),
      required: true,
    },
    ...versionHeaders(words),
  };
}

/** References to the shared parameters of an operation, and the parameters of its path. */
export function parametersOf(
  placed: PlacedRoute,
  shared: SharedParameters,
  words: VendorWords,
): readonly (Parameter | Reference)[] {
  const names = sharedNames(placed, words);
  for (const name of names) {
    if (!Object.hasOwn(shared, name))
      throw new Error(`No parameter of the OpenAPI document is named ${name}.`);
  }
  return [
    ...placed.parameters.map(pathParameter),
    ...names.map((name) => ({ $ref: `#/components/parameters/${name}` })),
  ];
}

/** Names of the parameters that belong to each place of keys. */
const authNames: Readonly<Record<AuthStyle, (words: VendorWords) => readonly string[]>> = {
  bearer: () => [],
  messages: (words) => versionNames(words),
  generateContent: () => ['key'],
  modelList: (words) => [...versionNames(words).map(optionalName), 'key'],
  realtime: () => [],
};

function sharedNames({ route }: PlacedRoute, words: VendorWords): readonly string[] {
  const { operation, auth, stream, method } = route;
  const names = [...authNames[auth](words)];
  if (stream === 'byQuery') names.push('alt');
  switch (operation) {
    case 'modelList':
      names.push(...Object.keys(messagesPages), ...Object.keys(contentPages));
      break;
    case 'googleModelList':
      names.push(...Object.keys(contentPages));
      break;
    case 'responseItems':
      names.push(...Object.keys(itemPages));
      break;
    case 'realtime':
      names.push('realtimeModel');
      break;
    case 'videoCreate':
      names.push('idempotencyKey');
      break;
    case 'videoAction':
      names.push('action', 'actionVersion', 'idempotencyKey');
      break;
    case 'videoContent':
      names.push('variant', 'ifNoneMatch');
      if (method === 'GET') names.push('range', 'ifRange');
      break;
  }
  return names;
}

const pathDescriptions: Readonly<Record<string, string>> = {
  model: 'Name of the model',
  task_id: 'Id of the video task',
  response_id: 'Id of the response',
};

function pathParameter({ name, spansSlashes }: Wildcard): Parameter {
  const what = pathDescriptions[name] ?? 'Id';
  return {
    name,
    in: 'path',
    required: true,
    description: spansSlashes ? `${what}; it may hold slashes.` : `${what}.`,
    schema: { type: 'string', minLength: 1 },
  };
}

const versionWords = ({ vendorc }: VendorWords) => [...new Set(['vendorc', ...vendorc])];
const versionNames = (words: VendorWords) => versionWords(words).map((word) => `${word}-version`);
const optionalName = (name: string) => `${name}-of-list`;

/** The version headers. If there are several spellings, one of them is required, which parameters cannot express. */
function versionHeaders(words: VendorWords): SharedParameters {
  const names = versionNames(words);
  const isOnly = names.length === 1;
  const wanted = isOnly ? '' : ` One of ${names.map((name) => `\`${name}\``).join(', ')} is required.`;
  return Object.fromEntries(
    names.flatMap((name) => [
      [
        name,
        { ...header(name, `Version of the messages protocol: a date.${wanted}`, date), required: isOnly },
      ],
      [optionalName(name), header(name, 'With `x-api-key` it asks for the messages list.', date)],
    ]),
  );
}

/** A route with its place in the document. */
interface PlacedRoute {
  readonly route: Route;
  /** Path with `{name}` for each parameter. */
  readonly template: string;
  /** Names of the parameters, in order. */
  readonly parameters: readonly Wildcard[];
}

interface Wildcard {
  readonly name: string;
  /** Whether the value may contain slashes. */
  readonly spansSlashes: boolean;
}

const wildcard = /\{([A-Za-z][A-Za-z0-9_]*)(\.\.\.)?\}(:?)/g;

/**
 * Assigns each route its place. OpenAPI treats templates that differ only in parameter names as one; all of them get the
 * names of the first.
 * @throws {Error} for two routes of one method that OpenAPI cannot tell apart
 */
export function placeRoutes(routes: readonly Route[]): readonly PlacedRoute[] {
  const templates = new Map<string, string>();
  const taken = new Set<string>();
  return routes.map((route) => {
    const shape = route.path.replace(wildcard, '{}$3');
    const template = templates.get(shape) ?? route.path.replace(wildcard, '{$1}$3');
    templates.set(shape, template);
    const place = `${route.method} ${shape}`;
    if (taken.has(place))
      throw new Error(`OpenAPI cannot tell ${route.method} ${route.path} from another route.`);
    taken.add(place);
    return { route, template, parameters: wildcardsOf(template, route.path) };
  });
}

/** @param path path of the route, with the wildcards of the template, possibly under other names */
function wildcardsOf(template: string, path: string): readonly Wildcard[] {
  const own = [...path.matchAll(wildcard)];
  return [...template.matchAll(wildcard)].map(([, name = ''], index) => {
    const [, , dots, action] = own[index] ?? [];
    return { name, spansSlashes: dots !== undefined || action === ':' };
  });
}
