import { createHash, createPrivateKey, X509Certificate } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import { errorCode } from '../errors.js';

/** What came of reading something: its text, or why there is none. Never both. */
export type Read =
  | { readonly text: string; readonly problem: null }
  | { readonly text: null; readonly problem: string };

/** The files that a config names, each read once, so that what was checked is also what is used. */
export interface ConfigFiles {
  /** Takes PEM text as it is, or a path to it; gives certificates that were parsed once. */
  certificate(pathOrPem: string): Read;
  /** The same of a private key. */
  privateKey(pathOrPem: string): Read;
  /** A file's text. */
  read(path: string): Read;
  /** What a file holds that is one text of the config: without the end of its last line, and of a bounded size. */
  secret(path: string): Read;
  absolute(path: string): string;
  /** SHA-256 of the files' contents, hex: another one says that some file has changed. */
  fingerprint(paths: readonly string[]): string;
}

/**
 * Reads files relative to a folder: that of the config file.
 * @param directory where relative paths start
 */
export function createConfigFiles(directory: string): ConfigFiles {
  const seen = new Map<string, Read>();
  const absolute = (path: string): string => resolve(directory, path);
  const read = (path: string): Read => {
    const name = absolute(path);
    const known = seen.get(name);
    if (known !== undefined) return known;
    const result = readText(name);
    seen.set(name, result);
    return result;
  };
  const pemText = (pathOrPem: string): Read =>
    pathOrPem.includes('-----BEGIN') ? { text: pathOrPem, problem: null } : read(pathOrPem);
  const certificate = (pathOrPem: string): Read => {
    const source = pemText(pathOrPem);
    if (source.problem !== null) return source;
    const blocks = source.text.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
    if (blocks.length === 0) return { text: null, problem: 'holds no PEM certificate' };
    try {
      for (const block of blocks) new X509Certificate(block);
    } catch {
      return { text: null, problem: 'holds a certificate that cannot be parsed' };
    }
    return { text: blocks.join('\n'), problem: null };
  };
  const privateKey = (pathOrPem: string): Read => {
    const source = pemText(pathOrPem);
    if (source.problem !== null) return source;
    const [block] =
      source.text.match(/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----/) ?? [];
    if (block === undefined) return { text: null, problem: 'holds no PEM private key' };
    try {
      createPrivateKey(block);
    } catch {
      return { text: null, problem: 'holds a private key that cannot be read, or only with a passphrase' };
    }
    return { text: block, problem: null };
  };
  const fingerprint = (paths: readonly string[]): string => {
    const hash = createHash('sha256');
    for (const path of paths) hash.update(JSON.stringify(read(path).text));
    return hash.digest('hex');
  };
  const secret = (path: string): Read => readSecret(absolute(path));
  return { certificate, privateKey, read, secret, absolute, fingerprint };
}

/** A chain of certificates has some; what is longer was not meant. */
const longestSecret = 65_536;
const utf8 = new TextDecoder('utf-8', { fatal: true });

function readSecret(name: string): Read {
  const failed = (problem: string): Read => ({ text: null, problem });
  try {
    const bytes = readStart(name, longestSecret + 1);
    if (bytes === null) return failed(`${name} is no file`);
    if (bytes.length > longestSecret) return failed(`${name} has more than ${longestSecret} bytes`);
    return { text: utf8.decode(bytes).replace(/\r?\n$/, ''), problem: null };
  } catch (error) {
    if (error instanceof TypeError) return failed(`${name} is no UTF-8 text`);
    return failed(`${name} cannot be read (${codeText(error)})`);
  }
}

/**
 * Reads the first bytes of a file, whatever its length; what is no file may have no end, or nobody who writes to it.
 * @returns null for what is no file
 * @throws Error of the system
 */
function readStart(name: string, most: number): Buffer | null {
  const descriptor = openSync(name, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (!fstatSync(descriptor).isFile()) return null;
    const bytes = Buffer.alloc(most);
    let length = 0;
    for (let read = -1; read !== 0 && length < most; length += read)
      read = readSync(descriptor, bytes, length, most - length, null);
    return bytes.subarray(0, length);
  } finally {
    closeSync(descriptor);
  }
}

/** The certificates of all authorities that browsers trust have a quarter of that. */
const longestFile = 1_048_576;

function readText(name: string): Read {
  try {
    const bytes = readStart(name, longestFile + 1);
    if (bytes === null) return { text: null, problem: 'this is no file' };
    if (bytes.length > longestFile)
      return { text: null, problem: `the file has more than ${longestFile} bytes` };
    return { text: bytes.toString('utf8'), problem: null };
  } catch (error) {
    return { text: null, problem: `the file cannot be read (${codeText(error)})` };
  }
}

/** The system's short word for an error: `ENOENT`. Its message might quote a value that is not ours to show. */
export function codeText(error: unknown): string {
  return errorCode(error) || 'unknown error';
}

/** Whether a private key is that of a certificate, the first of its chain. Both were parsed before. */
export function isKeyOf(key: string, cert: string): boolean {
  return new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
}

/** Why a certificate and its private key cannot serve together, or null. */
export function pairProblem(cert: string, key: string): string | null {
  try {
    createSecureContext({ cert, key });
    return null;
  } catch (error) {
    return `the certificate and the key cannot be used together (${codeText(error)})`;
  }
}
