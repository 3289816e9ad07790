import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { test } from 'tap';

interface Found {
  readonly runs: number;
  readonly methods: number;
  readonly healthy: Readonly<Record<string, string>>;
  readonly problems: readonly string[];
  readonly bystanders: {
    readonly streams: readonly string[];
    readonly upload: string;
    readonly session: string;
  };
  readonly end: string;
  readonly uncaught: readonly string[];
}

const thrower = fileURLToPath(new URL('./thrower.js', import.meta.url));

test('whatever throws ends one call or session, told, counted and logged; others under way end whole, and nothing stays held', {
  timeout: 280_000,
}, async (t) => {
  const run = promisify(execFile)(process.execPath, [thrower], {
    maxBuffer: 64 * 1024 * 1024,
    timeout: 270_000,
    killSignal: 'SIGKILL',
  });
  const { stdout } = await run.catch((error: Error & { readonly stderr: string }) => {
    throw new Error(`it did not end; its last words: ${error.stderr.slice(-2000)}`);
  });
  const found = JSON.parse(stdout) as Found;
  t.comment(`${found.runs} throws in ${found.methods} methods`);
  for (const [name, outcome] of Object.entries(found.healthy)) t.not(outcome, 'hangs', `${name} undisturbed`);
  t.ok(found.runs > 50, `${found.runs} throws`);
  t.strictSame(found.problems, []);
  t.strictSame(found.uncaught, []);
  for (const stream of found.bystanders.streams) {
    t.match(stream, /^200 /);
    t.match(stream, /second/, 'a stream that was under way comes to its end');
  }
  t.equal(found.bystanders.upload, 'HTTP/1.1 200 OK', 'so does an upload');
  t.equal(found.bystanders.session, 'session.updated', 'and a session goes on');
  t.equal(found.end, '0 requests, 0 sockets, 0 bytes');
});
