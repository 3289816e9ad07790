import { readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { t } from 'tap';

const directory = import.meta.dirname;
/** A file that takes longer hangs. */
const fileTimeoutMs = 120_000;
/** Their files wait most and take longest: started first, they are not waited for at the end. */
const first = ['supervisor', 'main', 'faults', 'store', 'flow/video', 'e2e'];

/** @returns the paths of all test files below this one, without its directory, longest first as far as is known */
function findTests(): string[] {
  const rank = (file: string) => {
    const index = first.findIndex((start) => file.startsWith(start));
    return index === -1 ? first.length : index;
  };
  return (readdirSync(directory, { recursive: true }) as string[])
    .filter((file) => file.endsWith('.test.js') && !file.startsWith('stress'))
    .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

// tap's own runner puts hooks into every process that a test starts, gateways too, through NODE_OPTIONS; they are for
// measuring coverage and cost more than most of the files do.
const plainNode = ['-u', 'NODE_OPTIONS', process.execPath, '--enable-source-maps'];

const wanted = process.argv.slice(2);
t.jobs = availableParallelism() + 1;
for (const file of findTests()) {
  if (wanted.length > 0 && !wanted.some((part) => file.includes(part))) continue;
  void t.spawn(
    'env',
    [...plainNode, join(directory, file)],
    { buffered: true, timeout: fileTimeoutMs },
    file,
  );
}
