type Json = Readonly<Record<string, unknown>>;

/** Reports what is wrong at a place of the document. */
type Check = (value: unknown, at: string) => readonly string[];

const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];
const types = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'];
const componentName = /^[A-Za-z0-9._-]+$/;
const mediaType = /^[\w.+-]+\/(?:[\w.+-]+|\*)$/;
const statusCode = /^(?:[1-5]\d\d|[1-5]XX|default)$/;
const templateName = /\{([^{}]*)\}/g;

/**
 * Holds a document against the structure that OpenAPI 3.1 prescribes, as far as the gateway's document goes: whatever
 * is not known here is a problem too.
 * @returns problems with their places, none for a document that is in order
 */
export function problemsOf(document: unknown): readonly string[] {
  const problems = openApi(document, '#');
  return [...problems, ...danglingIn(document), ...unlikeIds(document)];
}

/** Every reference of a document with its place. */
export function referencesIn(value: unknown, at = '#'): readonly (readonly [at: string, to: string])[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === '$ref' && typeof inner === 'string'
      ? [[at, inner] as const]
      : referencesIn(inner, `${at}/${key}`),
  );
}

/** What a reference of a document leads to, or undefined. */
function resolved(document: unknown, reference: string): unknown {
  if (!reference.startsWith('#/')) return undefined;
  let found: unknown = document;
  for (const part of reference.slice(2).split('/')) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (!isObject(found) || !Object.hasOwn(found, key)) return undefined;
    found = found[key];
  }
  return found;
}

/** The operations of a document with their places. */
export function operationsIn(document: unknown): readonly {
  readonly method: string;
  readonly path: string;
  readonly operation: Json;
}[] {
  const paths = isObject(document) && isObject(document.paths) ? document.paths : {};
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item as Json).map(([method, operation]) => ({
      method,
      path,
      operation: operation as Json,
    })),
  );
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** An object with these members and no others. */
function object(
  required: Readonly<Record<string, Check>>,
  optional: Readonly<Record<string, Check>> = {},
): Check {
  return (value, at) => {
    if (!isObject(value)) return [`${at} is no object`];
    const missing = Object.keys(required).filter((name) => !Object.hasOwn(value, name));
    return [
      ...missing.map((name) => `${at} has no ${name}`),
      ...Object.entries(value).flatMap(([name, inner]) => {
        const check = required[name] ?? optional[name];
        return check === undefined ? [`${at} has an unknown ${name}`] : check(inner, `${at}/${name}`);
      }),
    ];
  };
}

function map(key: (name: string) => boolean, check: Check, least = 0): Check {
  return (value, at) => {
    if (!isObject(value)) return [`${at} is no object`];
    const entries = Object.entries(value);
    return [
      ...(entries.length < least ? [`${at} has fewer than ${least} members`] : []),
      ...entries.flatMap(([name, inner]) => [
        ...(key(name) ? [] : [`${at} has a member of a bad name: ${name}`]),
        ...check(inner, `${at}/${name}`),
      ]),
    ];
  };
}

function list(check: Check, least = 0): Check {
  return (value, at) => {
    if (!Array.isArray(value)) return [`${at} is no array`];
    return [
      ...(value.length < least ? [`${at} has fewer than ${least} items`] : []),
      ...value.flatMap((item, index) => check(item, `${at}/${index}`)),
    ];
  };
}

function such(holds: (value: unknown) => boolean, what: string): Check {
  return (value, at) => (holds(value) ? [] : [`${at} is no ${what}: ${JSON.stringify(value)}`]);
}

function orReference(section: string, check: Check): Check {
  const reference = object({
    $ref: such((to) => String(to).startsWith(`#/components/${section}/`), section),
  });
  return (value, at) => (isObject(value) && '$ref' in value ? reference : check)(value, at);
}

const text = such((value) => typeof value === 'string' && value !== '', 'text');
const flag = such((value) => typeof value === 'boolean', 'boolean');
const anything = such((value) => value !== undefined, 'value');
const count = such((value) => Number.isInteger(value) && Number(value) >= 0, 'count');
const number = such(Number.isFinite, 'number');
const oneOf = (...values: readonly unknown[]) => such((value) => values.includes(value), values.join(' or '));
const texts = list(text);

const schema: Check = (value, at) => {
  if (typeof value === 'boolean') return [];
  return orReference('schemas', object({}, schemaKeywords))(value, at);
};
const schemas = list(schema, 1);
const namedSchemas = map(() => true, schema);
const type: Check = (value, at) =>
  Array.isArray(value) ? list(oneOf(...types), 1)(value, at) : oneOf(...types)(value, at);
const pattern = such((value) => typeof value === 'string' && new RegExp(value, 'u') !== null, 'pattern');

/** Of JSON Schema 2020-12. */
const schemaKeywords: Readonly<Record<string, Check>> = {
  type,
  const: anything,
  enum: list(anything, 1),
  not: schema,
  anyOf: schemas,
  allOf: schemas,
  oneOf: schemas,
  properties: namedSchemas,
  required: texts,
  additionalProperties: schema,
  items: schema,
  minItems: count,
  maxItems: count,
  minProperties: count,
  maxProperties: count,
  minLength: count,
  maxLength: count,
  pattern,
  minimum: number,
  maximum: number,
  exclusiveMinimum: number,
  exclusiveMaximum: number,
  format: text,
  contentMediaType: text,
  title: text,
  description: text,
  default: anything,
  examples: list(anything, 1),
};

const parameter: Check = (value, at) => [
  ...object(
    { name: text, in: oneOf('path', 'query', 'header', 'cookie'), schema },
    { required: flag, description: text },
  )(value, at),
  // OpenAPI has other places for these.
  ...(isObject(value) &&
  value.in === 'header' &&
  /^(?:accept|content-type|authorization)$/i.test(String(value.name))
    ? [`${at} is ignored by readers of OpenAPI`]
    : []),
  ...(isObject(value) && value.in === 'path' && value.required !== true ? [`${at} must be required`] : []),
];
const header = object({ schema }, { description: text });
const content = map((name) => mediaType.test(name), object({ schema }), 1);
const requestBody = object({ content }, { required: flag, description: text });
const response = object(
  { description: text },
  { headers: map((name) => componentName.test(name), orReference('headers', header)), content },
);
const tag = object({ name: text, description: text });

const operation = object(
  {
    operationId: such((id) => /^[a-z][A-Za-z0-9]*$/.test(String(id)), 'name in camel case'),
    tags: list(text, 1),
    summary: text,
    responses: map((status) => statusCode.test(status), orReference('responses', response), 1),
    security: list(
      map(() => true, list(text)),
      1,
    ),
  },
  { description: text, parameters: list(orReference('parameters', parameter)), requestBody },
);

const securityScheme: Check = (value, at) =>
  isObject(value) && value.type === 'http'
    ? object({ type: text, scheme: text }, { description: text })(value, at)
    : object(
        { type: oneOf('apiKey'), name: text, in: oneOf('query', 'header', 'cookie') },
        { description: text },
      )(value, at);

const named = (check: Check) => map((name) => componentName.test(name), check);

const openApi: Check = (value, at) => [
  ...object({
    openapi: such((version) => /^3\.1\.\d+$/.test(String(version)), 'version'),
    info: object({ title: text, version: text }, { description: text }),
    servers: list(object({ url: text }), 1),
    tags: list(tag),
    paths: map((path) => path.startsWith('/'), pathItem),
    components: object({
      schemas: named(schema),
      responses: named(response),
      parameters: named(parameter),
      headers: named(header),
      securitySchemes: named(securityScheme),
    }),
  })(value, at),
  ...placesIn(value),
];

function pathItem(value: unknown, at: string): readonly string[] {
  return map((method) => methods.includes(method), operation, 1)(value, at);
}

/** What the parts of an operation must be to its path, to the security schemes and to the tags. */
function placesIn(document: unknown): readonly string[] {
  if (!isObject(document)) return [];
  const schemes = resolved(document, '#/components/securitySchemes');
  const tags = Array.isArray(document.tags) ? document.tags.map(({ name }: Json) => name) : [];
  const shapes = Object.keys(isObject(document.paths) ? document.paths : {}).map((path) =>
    path.replace(templateName, '{}'),
  );
  return [
    ...repeatedIn(shapes).map((shape) => `two paths are ${shape}`),
    ...repeatedIn(tags).map((name) => `two tags are ${name}`),
    ...operationsIn(document).flatMap(({ method, path, operation: each }) => {
      const at = `${method} ${path}`;
      const parameters = (Array.isArray(each.parameters) ? each.parameters : []).map((one: Json) =>
        typeof one.$ref === 'string' ? (resolved(document, one.$ref) as Json | undefined) : one,
      );
      const inTemplate = [...path.matchAll(templateName)].map(([, name]) => `path ${name}`);
      const known = parameters.map((one) => `${one?.in} ${one?.name}`);
      const inPath = known.filter((name) => name.startsWith('path '));
      const requirements = Array.isArray(each.security)
        ? each.security.flatMap((one: Json) => Object.keys(one))
        : [];
      return [
        ...repeatedIn(known).map((name) => `${at} has two parameters ${name}`),
        ...(inTemplate.sort().join() === inPath.sort().join()
          ? []
          : [`${at} has the parameters ${inPath.join()}`]),
        ...requirements
          .filter((name) => !isObject(schemes) || !Object.hasOwn(schemes, name))
          .map((name) => `${at} has an unknown security scheme ${name}`),
        ...(Array.isArray(each.tags) ? each.tags : [])
          .filter((name) => !tags.includes(name))
          .map((name) => `${at} has an unknown tag ${name}`),
        ...(method !== 'post' && method !== 'put' && each.requestBody !== undefined
          ? [`${at} has a body`]
          : []),
      ];
    }),
  ];
}

function danglingIn(document: unknown): readonly string[] {
  return referencesIn(document)
    .filter(([, to]) => resolved(document, to) === undefined)
    .map(([at, to]) => `${at} leads to ${to}, which is not there`);
}

function unlikeIds(document: unknown): readonly string[] {
  return repeatedIn(operationsIn(document).map(({ operation: { operationId } }) => operationId)).map(
    (id) => `two operations are ${id}`,
  );
}

function repeatedIn(values: readonly unknown[]): readonly unknown[] {
  return [...new Set(values.filter((value, index) => values.indexOf(value) !== index))];
}
