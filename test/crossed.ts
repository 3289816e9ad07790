import { once } from 'node:events';
import { Session } from 'node:inspector/promises';
import { relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { WebSocket } from 'ws';
import { type DemoGateway, startGateway } from './support/gateway.js';

// Lists the files of `src` of which one call runs what does not run without it, by the counts of V8: `npm run crossed`.

const root = fileURLToPath(new URL('../src', import.meta.url));
const left = `simulator${sep}`;
const authorization = 'Bearer sk-demo';
const prompt = { model: 'sim-text', messages: [{ role: 'user', content: 'hi' }], max_tokens: 8 };

async function post({ url }: DemoGateway, path: string, body: object): Promise<void> {
  const answer = await fetch(url + path, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
}

async function session({ url }: DemoGateway): Promise<void> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/realtime?model=sim-realtime`, {
    headers: { authorization },
  });
  await once(socket, 'message');
  socket.close();
  await once(socket, 'close');
}

/** What is measured: a call, and the protocol that its upstream speaks. */
const calls = {
  'a chat call': ['chat', (to: DemoGateway) => post(to, '/v1/chat/completions', prompt)],
  'a stream of chat': [
    'chat',
    (to: DemoGateway) => post(to, '/v1/chat/completions', { ...prompt, stream: true }),
  ],
  'a translated call': ['chat', (to: DemoGateway) => post(to, '/v1/messages', prompt)],
  'a video creation': [
    'simulator',
    (to: DemoGateway) => post(to, '/v1/videos', { model: 'sim-video', prompt: 'x', seconds: '4' }),
  ],
  'a realtime session': ['simulator', session],
} as const;

const inspector = new Session();
inspector.connect();
await inspector.post('Profiler.enable');
await inspector.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

/** @returns names of the functions that have run since the last time, by file */
async function ran(): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const { result } = await inspector.post('Profiler.takePreciseCoverage');
  const files = result
    .filter(({ url }) => url.startsWith('file:'))
    .map(({ url, functions }) => {
      const names = functions.filter(({ functionName, ranges }) => functionName !== '' && ranges[0]?.count);
      return [
        relative(root, fileURLToPath(url)),
        new Set(names.map(({ functionName }) => functionName)),
      ] as const;
    });
  return new Map(files.filter(([path]) => !path.startsWith('..') && !path.startsWith(left)));
}

/** Runs something, and what timers have to do within some milliseconds. */
async function watched(run: () => unknown, ms: number): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  await ran();
  await run();
  await new Promise((resolve) => setTimeout(resolve, ms));
  return ran();
}

for (const [name, [kind, call]] of Object.entries(calls)) {
  const ends: (() => unknown)[] = [];
  const gateway = await startGateway({ teardown: (end) => ends.push(end as () => unknown) }, { demo: kind });
  // What happens once is not of a call, nor is what timers do without one.
  for (let warm = 0; warm < 3; warm++) await call(gateway);
  const atRest = await watched(() => {}, 5000);
  await call(gateway);
  const crossed = [...(await watched(() => call(gateway), 300))]
    .filter(([path, names]) => [...names].some((name) => !atRest.get(path)?.has(name)))
    .map(([path]) => path)
    .sort();
  process.stdout.write(`${name}: ${crossed.length} files\n`);
  if (process.argv.includes('--list')) process.stdout.write(`  ${crossed.join('\n  ')}\n`);
  for (const end of ends.reverse()) await end();
}
process.exit();
