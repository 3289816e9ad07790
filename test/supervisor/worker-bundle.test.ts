import { readFileSync } from 'node:fs';
import t, { test } from 'tap';

const bundle = readFileSync(new URL('../../src/worker.js', import.meta.url), 'utf8');

/** For which `npm run coverage` puts the modules back. */
const skip = process.env.NODE_V8_COVERAGE === undefined ? false : 'the modules are measured one by one';

test('a worker starts from one file, and what it takes from packages beside it is known', { skip }, (t) => {
  const imported = [...bundle.matchAll(/^(?:import |import .* from |\} from )["']([^"']+)["'];$/gm)].map(
    ([, name]) => name,
  );
  const packages = new Set(imported.filter((name) => name?.startsWith('node:') === false));
  t.strictSame([...packages].sort(), ['pino', 'uWebSockets.js']);
  t.end();
});

t.end();
