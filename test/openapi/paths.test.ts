import { test } from 'tap';
import { createOperationWords } from '../../src/openapi/operation-words.js';
import { placeRoutes } from '../../src/openapi/parameters.js';
import { buildRoutes, type Route } from '../../src/routes.js';
import { words } from './samples.js';

const [first] = buildRoutes(words);

function route(method: string, path: string): Route {
  return { ...(first as Route), method, path };
}

test('the wildcards of the router become templates', async (t) => {
  const routes = ['/v1/models', '/a/{x}/b/{y}', '/a/{model}:run', '/a/{model...}'].map((path) =>
    route('GET', path),
  );
  t.strictSame(
    placeRoutes(routes).map(({ template, parameters }) => [template, parameters]),
    [
      ['/v1/models', []],
      [
        '/a/{x}/b/{y}',
        [
          { name: 'x', spansSlashes: false },
          { name: 'y', spansSlashes: false },
        ],
      ],
      ['/a/{model}:run', [{ name: 'model', spansSlashes: true }]],
      ['/a/{model}', [{ name: 'model', spansSlashes: true }]],
    ],
  );
});

test('paths that differ in names alone are one path, under the names of the first', async (t) => {
  const placed = placeRoutes([
    route('GET', '/a/{id}'),
    route('DELETE', '/a/{name...}'),
    route('GET', '/a/{x}/b'),
  ]);
  t.strictSame(
    placed.map(({ template, parameters }) => [template, parameters]),
    [
      ['/a/{id}', [{ name: 'id', spansSlashes: false }]],
      ['/a/{id}', [{ name: 'id', spansSlashes: true }]],
      ['/a/{x}/b', [{ name: 'x', spansSlashes: false }]],
    ],
  );
});

test('two routes of one method and one template are refused', async (t) => {
  t.throws(
    () => placeRoutes([route('GET', '/a/{id}'), route('GET', '/a/{name...}')]),
    /cannot tell GET \/a\/\{name\.\.\.\} from another/,
  );
});

test('a route that nobody described is refused', async (t) => {
  const wordsOf = createOperationWords(words);
  t.equal(wordsOf(first as Route).id, 'createChatCompletion');
  t.throws(() => wordsOf(route('GET', '/v1/new')), /GET \/v1\/new is not described/);
});
