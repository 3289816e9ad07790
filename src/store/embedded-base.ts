import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Durability, type Environment, type OpenLmdb, openEnvironment } from './environment.js';
import type { LedgerBase } from './ledgers.js';
import { changeOwned, type OwnedBase } from './owned-records.js';
import { bootId } from './process-mark.js';
import type { Bytes, Records } from './records.js';

/** The open databases of an embedded store. */
export interface EmbeddedBase {
  readonly records: Records;
  readonly claims: Bytes;
  readonly changeRecords: Environment['change'];
  readonly changeClaims: Environment['change'];
  /** Opens the ledgers on first use. */
  ledgers(): LedgerBase & Pick<Environment, 'change'>;
  /** Whether any process has created ledgers. */
  hasLedgers(): boolean;
  /** Opens the records of owners on first use. */
  owned(): OwnedBase & Pick<Environment, 'change'>;
  /** Whether any process has created records of owners. */
  hasOwned(): boolean;
  close(): void;
}

/** Address space. A ledger of months needs more than the records do, and records of owners may too. */
const largeMapBytes = 2 ** 38;

const claimsPrefix = 'claims';

/**
 * Opens the databases in a folder: `records` and, apart from them, the claims. A claim lasts for seconds and is made
 * often, so it need not wait for the disk. A killed process loses no claims; a crash of the machine may. Afterwards
 * claims start anew, in a folder named after the boot id. Ledgers and records of owners are separate databases too, so
 * that writing a record does not wait for a long batch.
 * @throws Error if they cannot be opened
 */
export function openBase(open: OpenLmdb, folder: string): EmbeddedBase {
  const boot = bootId();
  const isBootKnown = /^[0-9a-f-]{36}$/.test(boot);
  const claimsName = isBootKnown ? `${claimsPrefix}-${boot}` : claimsPrefix;
  removeOldClaims(folder, claimsName);
  const opened: Environment[] = [];
  const close = (): void => {
    for (const environment of opened) environment.close();
  };
  try {
    const opening = (name: string, options: Parameters<typeof openEnvironment>[2]): Environment => {
      const environment = openEnvironment(open, join(folder, name), options);
      opened.push(environment);
      return environment;
    };
    const lazily = <Base>(
      name: string,
      durability: Durability,
      baseOf: (environment: Environment) => Base,
    ) => {
      let base: Base | null = null;
      const get = (): Base => {
        base ??= baseOf(opening(name, { durability, mapBytes: largeMapBytes }));
        return base;
      };
      return { get, has: () => base !== null || existsSync(join(folder, name)) };
    };
    const records = opening('records', { durability: 'commit' });
    const claims = opening(claimsName, { durability: isBootKnown ? 'none' : 'commit' });
    const ledgers = lazily('ledgers', 'commit', ({ database, change }) => ({
      lines: database('lines'),
      retention: database('retention'),
      sums: { records: database('sums'), expiry: database('expiry') },
      sumLog: database('sum-log'),
      change,
    }));
    const owned = lazily('owned', 'order', ({ database, change }) => {
      const base: OwnedBase = {
        values: database('values'),
        byOwner: database('by-owner'),
        byTime: database('by-time'),
        byName: database('by-name'),
        sums: database('sums'),
        changedSums: new Map(),
      };
      return { ...base, change: <T>(work: () => T): T => change(() => changeOwned(base, work)) };
    });
    return {
      records: { records: records.database('records'), expiry: records.database('expiry') },
      claims: claims.database('claims'),
      changeRecords: records.change,
      changeClaims: claims.change,
      ledgers: ledgers.get,
      hasLedgers: ledgers.has,
      owned: owned.get,
      hasOwned: owned.has,
      close,
    };
  } catch (error) {
    close();
    throw error;
  }
}

/**
 * Opens each database that outlives a restart of the machine, with the name of its folder.
 * @throws Error if one cannot be opened
 */
export function* openLasting(
  open: OpenLmdb,
  folder: string,
): Generator<{ readonly name: string; readonly environment: Environment }> {
  for (const name of ['records', 'ledgers', 'owned']) {
    if (!existsSync(join(folder, name))) continue;
    const large = name === 'records' ? {} : { mapBytes: largeMapBytes };
    yield {
      name,
      environment: openEnvironment(open, join(folder, name), { durability: 'commit', ...large }),
    };
  }
}

/** No process has them open: all processes that had ended with the machine. */
function removeOldClaims(folder: string, current: string): void {
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch {
    return;
  }
  for (const name of names) {
    if (!name.startsWith(`${claimsPrefix}-`) || name === current) continue;
    rmSync(join(folder, name), { recursive: true, force: true });
  }
}
