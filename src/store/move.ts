import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import type { StoreSettings } from '../config/types.js';
import { type DumpEntry, dumpLines, readDump } from './dump.js';
import { readEmbedded, writeEmbedded } from './embedded-dump.js';
import { readPostgres, writePostgres } from './postgres-dump.js';
import { type RedisPlace, readRedis } from './redis-dump.js';

/**
 * Exports a store as lines of JSON.
 * @throws Error if the store cannot be read, or the export cannot be written
 */
export async function exportStore(source: StoreSettings | RedisPlace, output: Writable): Promise<void> {
  for await (const text of dumpLines(pagesOf(source))) if (!output.write(text)) await once(output, 'drain');
}

function pagesOf(source: StoreSettings | RedisPlace): AsyncIterable<readonly DumpEntry[]> {
  if ('urls' in source) return readRedis(source);
  return source.kind === 'embedded' ? readEmbedded(source.path) : readPostgres(source);
}

/**
 * Imports an export into an empty store: all of it, or nothing.
 * @returns the number of entries
 * @throws Error with the reason
 */
export async function importStore(settings: StoreSettings, input: Readable): Promise<number> {
  const target = await (settings.kind === 'embedded'
    ? writeEmbedded(settings.path)
    : writePostgres(settings));
  return readDump(input, target);
}
