import { createHash, createPrivateKey, X509Certificate } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import { errorCode } from '../errors.js';

/** Result of reading: either the text or the problem. */
export type ReadResult =
  | { readonly text: string; readonly problem: null }
  | { readonly text: null; readonly problem: string };

/** The files that a config names. Each is read once, so that the checked content is the content used. */
export interface ConfigFiles {
  /** Reads certificates, from PEM text or a path to it. Returns only certificates that can be parsed. */
  certificate(pathOrPem: string): ReadResult;
  /** Reads a private key in the same way. */
  privateKey(pathOrPem: string): ReadResult;
  /** Reads a file's text. */
  read(path: string): ReadResult;
  /** Reads a file that contains one string of the config. Removes the last line's end. The size is limited. */
  secret(path: string): ReadResult;
  absolute(path: string): string;
  /** SHA-256 of the files' contents, in hex. It differs when a file has changed. */
  fingerprint(paths: readonly string[]): string;
}

/**
 * Creates a reader of the files that a config names.
 * @param directory start of relative paths: the config file's folder
 */
export function createConfigFiles(directory: string): ConfigFiles {
  const seen = new Map<string, ReadResult>();
  const absolute = (path: string): string => resolve(directory, path);
  const read = (path: string): ReadResult => {
    const name = absolute(path);
    const known = seen.get(name);
    if (known !== undefined) return known;
    const result = readText(name);
    seen.set(name, result);
    return result;
  };
  const pemText = (pathOrPem: string): ReadResult =>
    pathOrPem.includes('-----BEGIN') ? { text: pathOrPem, problem: null } : read(pathOrPem);
  const certificate = (pathOrPem: string): ReadResult => {
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
  const privateKey = (pathOrPem: string): ReadResult => {
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
  const secret = (path: string): ReadResult => readSecret(absolute(path));
  return { certificate, privateKey, read, secret, absolute, fingerprint };
}

/** Largest secret, in bytes. Enough for a chain of certificates; anything larger is a mistake. */
const longestSecret = 65_536;
const utf8 = new TextDecoder('utf-8', { fatal: true });

function readSecret(name: string): ReadResult {
  const failed = (problem: string): ReadResult => ({ text: null, problem });
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
 * Reads the first bytes of a regular file, whatever its length. Other files may have no end, or no process that writes
 * to them.
 * @returns null if it is not a regular file
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

/** Largest file, in bytes. The certificates of all authorities that browsers trust need a quarter of that. */
const longestFile = 1_048_576;

function readText(name: string): ReadResult {
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

/** The system's code of an error, such as `ENOENT`. Its message might contain a value that must not be shown. */
export function codeText(error: unknown): string {
  return errorCode(error) || 'unknown error';
}

/** Whether a private key belongs to a certificate, the first of its chain. Both must be parsed already. */
export function isKeyOf(key: string, cert: string): boolean {
  return new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
}

/** What the codes of OpenSSL's errors mean here. */
const pairReasons: Readonly<Record<string, string>> = {
  ERR_OSSL_X509_KEY_VALUES_MISMATCH: 'the key is that of another certificate',
  ERR_OSSL_PEM_NO_START_LINE: 'one of the files has no PEM of its kind',
  ERR_OSSL_BAD_DECRYPT: 'the key needs a passphrase',
};

/** Returns why a certificate and its private key cannot be used together, or null. */
export function pairProblem(cert: string, key: string): string | null {
  let code = '';
  try {
    createSecureContext({ cert, key });
    // OpenSSL itself compares keys of one type only.
    if (isKeyOf(key, cert)) return null;
    code = 'ERR_OSSL_X509_KEY_VALUES_MISMATCH';
  } catch (error) {
    code = codeText(error);
  }
  const reason = pairReasons[code] ?? 'OpenSSL refuses them';
  return `the certificate and the key cannot be used together (${code}): ${reason}`;
}
