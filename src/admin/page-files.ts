import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A file of the console's page. */
export interface PageFile {
  readonly contentType: string;
  readonly text: string;
  /** In bytes. */
  readonly size: number;
  /** Of the content, quoted as a header has it. */
  readonly etag: string;
}

/** The page itself, which is served under a path of its own. */
export const indexName = 'index.html';

const contentTypes = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
} as const;

type Kind = keyof typeof contentTypes;

/** Beside this module: what the compiler made of the page's code. */
const compiledFolder = fileURLToPath(new URL('page/', import.meta.url));
/** What it does not touch stays in the folder of the sources, beside `dist/`. */
const sourceFolder = fileURLToPath(new URL('../../../src/admin/page/', import.meta.url));
/** For developers' tools, which would ask for a file that is not served. */
const sourceMapLine = /\n\/\/# sourceMappingURL=\S*\s*$/;

/**
 * Reads all files of the page. These are the only ones that are ever served: no path of a request leads to a file.
 * @returns by the name under `/console/`, `views/keys.js` say
 * @throws Error when a folder or a file is not there
 */
export async function readPageFiles(): Promise<ReadonlyMap<string, PageFile>> {
  const require = createRequire(import.meta.url);
  const groups = await Promise.all([
    readFolder(sourceFolder, ['html', 'css']),
    readFolder(compiledFolder, ['js']),
    readNamed('uplot.js', require.resolve('uplot/dist/uPlot.esm.js')),
    readNamed('uplot.css', require.resolve('uplot/dist/uPlot.min.css')),
  ]);
  return new Map(groups.flat());
}

async function readFolder(folder: string, kinds: readonly Kind[]): Promise<[string, PageFile][]> {
  const names = await readdir(folder, { recursive: true });
  const wanted = names.filter((name) => kinds.some((kind) => name.endsWith(`.${kind}`)));
  return (await Promise.all(wanted.map((name) => readNamed(name, join(folder, name))))).flat();
}

async function readNamed(name: string, path: string): Promise<[string, PageFile][]> {
  const text = (await readFile(path, 'utf8')).replace(sourceMapLine, '\n');
  const kind = name.slice(name.lastIndexOf('.') + 1) as Kind;
  const etag = `"${createHash('sha256').update(text).digest('base64url')}"`;
  return [[name, { contentType: contentTypes[kind], text, size: Buffer.byteLength(text), etag }]];
}
