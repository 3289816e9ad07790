import { execFileSync } from 'node:child_process';
import { runInNewContext } from 'node:vm';
import { test } from 'tap';
import { curl, taskId } from '../../../src/console/playground/code/curl.js';
import { literal, python, shellQuote, typescript } from '../../../src/console/playground/code/quoting.js';
import { post } from '../../../src/console/playground/gateway-request.js';

/** What shells, Python and JavaScript have their own ideas about. */
const awkward = [
  '',
  "it's",
  "'",
  "''''",
  '"double"',
  '$HOME `id` $(id) !! \\ \\\\ \\"',
  'a\nb\r\n\tc',
  "-n '\\'' end\\",
  '@file %s %% & | ; < > * ? [a] {b} ~ #c',
  'naïve — 漢字 \u2028 \u{1f600} \ud800',
  '\u0001\u007f',
];

test('the shell takes a quoted text as it is', async (t) => {
  for (const text of awkward) {
    const said = execFileSync('sh', ['-c', `printf '%s' ${shellQuote(text)}`]);
    t.equal(said.toString('utf8'), Buffer.from(text).toString('utf8'));
  }
});

test('the body of a curl command reaches curl as it is', async (t) => {
  const body = { prompt: awkward.join(' '), list: awkward };
  const command = curl('http://127.0.0.1:8080', post('/v1/a?b=c&d=e', body), { credential: 'bearer' });
  // In the place of curl: a function that says each of its arguments, with a NUL behind it.
  const script = `GATEWAY_KEY=sk-1; curl() { printf '%s\\0' "$@"; }; ${command}`;
  const said = execFileSync('sh', ['-c', script]).toString('utf8').split('\0').slice(0, -1);
  const [url, , credential, , type, , data] = said;
  t.equal(url, 'http://127.0.0.1:8080/v1/a?b=c&d=e');
  t.equal(credential, 'authorization: Bearer sk-1');
  t.equal(type, 'content-type: application/json');
  t.strictSame(JSON.parse(data ?? ''), body);
});

test('the id of a task is filled in by the shell, and only in requests about a task', async (t) => {
  const request = post(`/a/${taskId}`, { task_id: taskId, other: "it's" });
  const say = (ofTask: boolean): string => {
    const command = curl('http://127.0.0.1', request, { credential: 'bearer', ofTask });
    const script = `ID=id-7; curl() { printf '%s\\n' "$1" "$7"; }; ${command}`;
    return execFileSync('sh', ['-c', script]).toString('utf8');
  };
  t.equal(
    say(true),
    `http://127.0.0.1/a/id-7\n${JSON.stringify({ task_id: 'id-7', other: "it's" }, null, 2)}\n`,
  );
  t.match(say(false), taskId);
});

const value = {
  short: [1, true, false, null, 'a'],
  'not a name': awkward,
  nested: { empty: {}, none: [], deep: { text: "it's ".repeat(40), flags: [true, null] } },
};

test('a literal of TypeScript is the value', async (t) => {
  // The values of another context have prototypes of their own.
  const said = runInNewContext(`JSON.stringify(${literal(value, typescript)})`) as string;
  t.equal(said, JSON.stringify(value));
});

test('a literal of Python is the value', {
  skip: hasPython() ? false : 'python3 is not installed',
}, async (t) => {
  const script = `import json, sys; sys.stdout.write(json.dumps(${literal(value, python)}))`;
  t.strictSame(JSON.parse(execFileSync('python3', ['-c', script]).toString('utf8')), value);
});

function hasPython(): boolean {
  try {
    execFileSync('python3', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
