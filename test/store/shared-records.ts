import { GatewayError } from '../../src/errors.js';
import type { Store, StoredRecord } from '../../src/store/store.js';
import type { Fate } from '../limits/simulated-accounts.js';
import { random } from '../support/seed.js';

/** The records of one collection in memory, with calls that take turns in a random order. */
export class SharedRecords implements Pick<Store, 'get' | 'create' | 'replace'> {
  writes = 0;
  /** Somebody else changes each record just before it is to be replaced. */
  isBusy = false;
  /** Decides each change. */
  fate: () => Fate = () => 'good';
  readonly #records = new Map<string, StoredRecord>();

  /** What is reserved by an account. */
  reserved(id: string): number {
    const record = this.#records.get(id);
    return record === undefined ? 0 : (JSON.parse(record.value) as { reserved: number }).reserved;
  }

  put(id: string, value: string): void {
    const revision = (this.#records.get(id)?.revision ?? 0) + 1;
    this.#records.set(id, { value, revision });
  }

  async get(_collection: string, id: string): Promise<StoredRecord | null> {
    await turn();
    const record = this.#records.get(id) ?? null;
    await turn();
    return record;
  }

  create(_collection: string, id: string, value: string): Promise<boolean> {
    return this.#change(id, value, () => !this.isBusy && !this.#records.has(id));
  }

  replace(_collection: string, id: string, value: string, revision: number): Promise<boolean> {
    return this.#change(id, value, () => !this.isBusy && this.#records.get(id)?.revision === revision);
  }

  async #change(id: string, value: string, isAllowed: () => boolean): Promise<boolean> {
    await turn();
    const fate = this.fate();
    if (fate === 'failed') throw gone();
    const isDone = isAllowed();
    if (isDone) {
      this.writes++;
      this.put(id, value);
    }
    await turn();
    if (fate === 'lost') throw gone();
    return isDone;
  }
}

async function turn(): Promise<void> {
  for (let left = Math.floor(random() * 4); left >= 0; left--)
    await new Promise((resolve) => setImmediate(resolve));
}

function gone(): GatewayError {
  return new GatewayError('store_unavailable', 'The store is gone.');
}
