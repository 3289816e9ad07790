import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import type { Test } from 'tap';
import { pathOf, without } from '../../simulator/media/programs.js';
import { seenWithin } from '../../support/eventually.js';
import { watchFaults } from './faults.js';
import { adminToken, type ConsoleGateway } from './gateway.js';

const program = 'chromium';
/** Why the tests of the page are skipped, or false where there is a browser. */
export const noBrowser: string | false = without(program);

/** How long anything on the page may take on a machine that others keep busy, and how often it is looked at for that. */
export const consoleWait = { withinMs: 60_000, everyMs: 50 } as const;

const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--disable-dev-shm-usage',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--mute-audio',
];

/** The parts of the page: what stands after `#` in their addresses. */
export const parts = [
  'overview',
  'targets',
  'requests',
  'keys',
  'usage',
  'tasks',
  'config',
  'playground',
] as const;

export type Part = (typeof parts)[number];

interface VisitOptions {
  readonly size?: { readonly width: number; readonly height: number };
  /** Statuses above 399 that the page is to be answered with: a browser tells of each in its console. */
  readonly refusals?: readonly number[];
  /** What the browser says that its reader prefers; light unless given. */
  readonly theme?: 'light' | 'dark';
  /** The visit begins at the sign-in. */
  readonly signedOut?: boolean;
}

/** One who looks at the console, with a browser profile of their own. */
interface Visit {
  readonly page: Page;
  /** For more tabs of the same profile; what happens in them counts as it does in the first. */
  readonly context: BrowserContext;
  signIn(token?: string): Promise<void>;
  /** Goes to a part of the page, and waits until it is there. */
  open(part: Part): Promise<void>;
}

/** Starts a browser that ends with the test. */
export async function startBrowser(t: Test): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: pathOf(program) ?? program,
    args: flags,
    timeout: 2 * consoleWait.withinMs,
  });
  t.teardown(() => browser.close());
  return browser;
}

/**
 * Looks at the console. Whatever the test does there, the page may ask nobody but its own host, break no policy, throw
 * nothing and write no error to the browser's console.
 */
export async function visit(
  t: Test,
  browser: Browser,
  { adminUrl }: ConsoleGateway,
  options: VisitOptions,
  look: (visit: Visit) => Promise<void>,
): Promise<void> {
  const { size = { width: 1280, height: 900 }, refusals = [], theme = 'light', signedOut = false } = options;
  const context = await browser.newContext({
    viewport: size,
    colorScheme: theme,
    reducedMotion: 'reduce',
    locale: 'en-US',
    timezoneId: 'UTC',
  });
  context.setDefaultTimeout(consoleWait.withinMs);
  const faults = watchFaults(context, adminUrl, refusals);
  try {
    const page = await context.newPage();
    const signIn = async (token: string = adminToken): Promise<void> => {
      await page.getByLabel('Admin token').fill(token);
      await page.getByRole('button', { name: 'Sign in' }).click();
    };
    await page.goto(adminUrl);
    if (!signedOut) {
      await signIn();
      await page.getByRole('navigation').waitFor();
    }
    await look({
      page,
      context,
      signIn,
      async open(part) {
        await page.evaluate(`location.hash = '#${part}'`);
        await page.locator(`nav a[href="#${part}"][aria-current="page"]`).waitFor({ state: 'attached' });
      },
    });
  } finally {
    await context.close();
    t.strictSame(faults, [], 'no error in the browser, and no request to another host');
  }
}

/** Waits until what is read is what is expected; where that never comes, the test says what it was instead. */
export async function becomes<Value>(
  t: Test,
  read: () => Value | Promise<Value>,
  expected: Value,
  message: string,
): Promise<void> {
  const wanted = JSON.stringify(expected);
  const fits = (found: Value): boolean => JSON.stringify(found) === wanted;
  const found = await seenWithin(read, { fits, ...consoleWait });
  t.strictSame(found, expected, message);
}
