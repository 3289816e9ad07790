import { join } from 'node:path';
import { t } from 'tap';

// Runs the test files that its arguments name, as paths from this folder, one after the other in this process. Each is
// imported in a test named after it: its own tests queue behind that one, and the next file behind them. What fails or
// hangs is thus below the name of its file.
for (const file of process.argv.slice(2)) {
  await t.test(file, async () => void (await import(join(import.meta.dirname, file))));
}
