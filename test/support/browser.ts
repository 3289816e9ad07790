import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';

const usualFlags = [
  '--headless=new',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--no-first-run',
  '--disable-background-networking',
];

/**
 * Opens a page in a browser, which ends with all of its processes at the end of the test.
 * @param flags in addition to those that every page needs here
 */
export function openPage(t: Test, address: string, flags: readonly string[] = []): ChildProcess {
  const profile = mkdtempSync(join(tmpdir(), 'page-'));
  const browser = spawn('chromium', [...usualFlags, ...flags, `--user-data-dir=${profile}`, address], {
    detached: true,
    stdio: 'ignore',
  });
  const ended = new Promise((resolve) => browser.once('close', resolve));
  t.teardown(async () => {
    if (browser.pid !== undefined && browser.exitCode === null && browser.signalCode === null) {
      process.kill(-browser.pid, 'SIGKILL');
      await ended;
    }
    rmSync(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  });
  return browser;
}

/** Never resolves: rejects when the browser ends or takes too long. */
export function browserFailure(browser: ChildProcess, longestMs: number): Promise<never> {
  return new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`nothing within ${longestMs} ms`)), longestMs).unref();
    browser.once('error', reject);
    browser.once('close', (code) => reject(new Error(`the browser ended with ${code}`)));
  });
}
