import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';

/** Creates a folder that is removed after the test. */
export function temporaryFolder(t: Pick<Test, 'teardown'>): string {
  const path = mkdtempSync(join(tmpdir(), 'gateway-'));
  t.teardown(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
