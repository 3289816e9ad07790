import { readFileSync } from 'node:fs';

// `fixtures/tls` was written by openssl for the tests alone; its keys open nothing. `upstream/secure.test.ts` says what
// each of them is.
const fixtures = new URL('../../../test/fixtures/tls/', import.meta.url);
const pem = (name: string): string => readFileSync(new URL(name, fixtures), 'utf8');

/** The authority that has signed the others. */
export const authority = pem('ca.pem');
/** Of a server at `localhost` and 127.0.0.1. */
export const serverCertificate = { cert: pem('localhost.pem'), key: pem('localhost.key') };
/** For clients, with the name `gateway`. */
export const clientCertificate = { cert: pem('client.pem'), key: pem('client.key') };
/** Of a server that serves only those who show such a certificate. */
export const demanding = {
  ...serverCertificate,
  ca: authority,
  requestCert: true,
  rejectUnauthorized: true,
};
