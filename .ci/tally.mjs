// Reads reports of test runs in TAP (https://testanything.org/tap-version-14-specification.html) and says what they
// come to: `node tally.mjs STATUS REPORT...`, with the exit status of the runs. It prints what failed or was skipped with
// its path and what was found, and ends with `N passed, N failed, N skipped`, of tests, not of assertions. Exit code 1
// where anything failed or was skipped, where a report has no summary of its whole run, and where a test file that was
// found did not run.
import { readFileSync } from 'node:fs';

const maxDetails = 100;
const point = /^( *)(?:# Subtest: (.*)|(not )?ok \d+(?: - (.*?))?(?: # (SKIP|TODO|time=).*)?)$/;

/** @returns of one report: how many tests passed and failed, and what there is to be said of those that did not pass */
function read(path) {
  // What a test printed may hold bytes that are no text.
  const lines = readFileSync(path, 'utf8').split('\n');
  const names = [];
  const result = { passed: 0, failed: 0, skipped: 0, said: [] };
  let isWhole = false;
  let found = 0;
  let ran = 0;
  let seed = null;
  for (const [index, text] of lines.entries()) {
    const files = /^ *# (\d+) test files\b(?:, SEED=(\d+))?/.exec(text);
    found += Number(files?.[1] ?? 0);
    seed ??= files?.[2] ?? null;
    if (/^# \{ total: \d+/.test(text)) isWhole = true;
    const match = point.exec(text);
    if (match === null) continue;
    const [, indent, begun, not, name = '', directive] = match;
    const depth = indent.length / 4;
    if (begun !== undefined) {
      names[depth] = begun;
      continue;
    }
    const isFile = name.endsWith('.test.js');
    const isTest = directive === 'time=' && depth > 1 && !isFile;
    if (isFile) ran++;
    if (directive === 'SKIP' || directive === 'TODO') {
      result.skipped++;
      result.said.push(`skipped: ${[...names.slice(1, depth), text.trim()].join(' > ')}`);
    } else if (not !== undefined) {
      if (isTest) result.failed++;
      result.said.push(`not ok - ${[...names.slice(1, depth), name].join(' > ')}`);
      result.said.push(...details(lines, index + 1, indent));
    } else if (isTest) result.passed++;
  }
  if (!isWhole) result.said.push(`not ok - ${path}: the run gave no summary`, ...lines.slice(-maxDetails));
  if (ran !== found) result.said.push(`not ok - ${path}: ${found} test files were found, and ${ran} ran`);
  if (result.said.length > 0 && seed !== null) result.said.push(`random cases were drawn from SEED=${seed}`);
  // What failed outside of every test has failed as well.
  if (result.failed === 0 && result.said.some((text) => text.startsWith('not ok'))) result.failed = 1;
  return result;
}

/** The lines below a failed point that say why. */
function details(lines, from, indent) {
  const found = [];
  if (lines[from]?.trim() !== '---') return found;
  for (let at = from + 1; at < lines.length && lines[at] !== `${indent}  ...`; at++) {
    if (found.length === maxDetails) return [...found, '...'];
    found.push(lines[at].slice(0, 400));
  }
  return found;
}

const [status, ...reports] = process.argv.slice(2);
const results = reports.map(read);
const sum = (of) => results.reduce((total, result) => total + result[of], 0);
if (status !== '0' && sum('failed') === 0)
  results.push({ passed: 0, failed: 1, skipped: 0, said: [`not ok - a run ended with status ${status}`] });
for (const { said } of results) for (const text of said) process.stdout.write(`${text}\n`);
process.stdout.write(`${sum('passed')} passed, ${sum('failed')} failed, ${sum('skipped')} skipped\n`);
process.exitCode = sum('failed') + sum('skipped') === 0 ? 0 : 1;
