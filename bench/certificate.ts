import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { authority, serverCertificate } from '../test/support/certificates.js';

/** PEM files of a certificate for 127.0.0.1 and localhost: nginx compares it with names alone. */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
  /** The certificate and its key, one after the other, as haproxy wants them. */
  readonly both: string;
  /** Of the authority that has signed it. */
  readonly ca: string;
}

/** Writes the certificate of everything that speaks TLS here into the bench's directory. */
export function certificateFiles(directory: string): CertificateFiles {
  const { cert, key } = serverCertificate;
  const put = (name: string, text: string): string => {
    const file = join(directory, name);
    writeFileSync(file, text);
    return file;
  };
  return {
    cert: put('bench.pem', cert),
    key: put('bench.key', key),
    both: put('bench-both.pem', `${cert}\n${key}`),
    ca: put('bench-ca.pem', authority),
  };
}
