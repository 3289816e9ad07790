import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { authority, serverCertificate } from '../test/support/certificates.js';

/** PEM files of a certificate for 127.0.0.1 and localhost. nginx compares it with names only. */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
  /** The certificate followed by its key, the form that haproxy reads. */
  readonly both: string;
  /** The certificate of the authority that signed it. */
  readonly ca: string;
}

/** Writes the certificate of all TLS servers of the bench to its directory. */
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
