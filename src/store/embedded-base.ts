import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Environment, type OpenLmdb, openEnvironment } from './environment.js';
import type { LedgerBase } from './ledgers.js';
import type { OwnedBase } from './owned-records.js';
import { bootId } from './process-mark.js';
import type { Bytes, Records } from './records.js';

/** The open databases of an embedded store. */
export interface EmbeddedBase {
  readonly records: Records;
  readonly claims: Bytes;
  readonly changeRecords: Environment['change'];
  readonly changeClaims: Environment['change'];
  /** Opens the ledgers when they are first needed. */
  ledgers(): LedgerBase & Pick<Environment, 'change'>;
  /** Some process has made ledgers here. */
  hasLedgers(): boolean;
  /** Opens the records of owners when they are first needed. */
  owned(): OwnedBase & Pick<Environment, 'change'>;
  /** Some process has made records of owners here. */
  hasOwned(): boolean;
  close(): void;
}

/** Address space, of which a ledger of months needs more than the records do; so may what owners keep. */
const largeMapBytes = 2 ** 38;

const claimsPrefix = 'claims';

/**
 * Opens the databases under a folder: `records`, and the claims apart from them. A claim lasts for seconds and is made
 * often, so that no disk need be waited for: a killed process loses nothing by that, only a machine that goes down
 * may, and after that the claims begin anew, in a folder that is named after the machine's start. Ledgers are apart from
 * the records too, and so is what belongs to owners: whoever makes a record does not wait until a long batch is written.
 * @throws Error when they cannot be opened
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
    const lazily = <Base>(name: string, baseOf: (environment: Environment) => Base) => {
      let base: (Base & Pick<Environment, 'change'>) | null = null;
      const get = () => {
        if (base !== null) return base;
        const environment = opening(name, { durable: true, mapBytes: largeMapBytes });
        base = { ...baseOf(environment), change: environment.change };
        return base;
      };
      return { get, has: () => base !== null || existsSync(join(folder, name)) };
    };
    const records = opening('records', { durable: true });
    const claims = opening(claimsName, { durable: !isBootKnown });
    const ledgers = lazily('ledgers', ({ database }) => ({
      lines: database('lines'),
      retention: database('retention'),
      sums: { records: database('sums'), expiry: database('expiry') },
      sumLog: database('sum-log'),
    }));
    const owned = lazily('owned', ({ database }) => ({
      values: database('values'),
      byOwner: database('by-owner'),
      byTime: database('by-time'),
      byName: database('by-name'),
      sums: database('sums'),
    }));
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
 * Opens each database that outlives the machine's start, under the name of its folder.
 * @throws Error when one cannot be opened
 */
export function* openLasting(
  open: OpenLmdb,
  folder: string,
): Generator<{ readonly name: string; readonly environment: Environment }> {
  for (const name of ['records', 'ledgers', 'owned']) {
    if (!existsSync(join(folder, name))) continue;
    const large = name === 'records' ? {} : { mapBytes: largeMapBytes };
    yield { name, environment: openEnvironment(open, join(folder, name), { durable: true, ...large }) };
  }
}

/** Nobody has them open any more: the processes that had went down with the machine. */
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
