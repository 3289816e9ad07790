import { join } from 'node:path';
import { t } from 'tap';

// Runs the test files that TEST_FILES lists, as paths from this folder, one after the other in this process. Each is
// imported in a test named after it: its own tests queue behind that one, and the next file behind them. What fails or
// hangs is thus below the name of its file.
const { TEST_FILES: files = '' } = process.env;

/** Queues the first of the files; the others queue once it is imported, since tap ends a run whose queue is empty. */
function queue([file, ...others]: readonly string[]): void {
  if (file === undefined) return;
  void t.test(file, async () => {
    await import(join(import.meta.dirname, file));
    queue(others);
  });
}

queue(files.split(','));
