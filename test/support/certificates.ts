import { readFileSync } from 'node:fs';

// `fixtures/tls` was made with openssl, only for the tests. `upstream/secure.test.ts` describes each
// certificate.
const fixtures = new URL('../../../test/fixtures/tls/', import.meta.url);
const pem = (name: string): string => readFileSync(new URL(name, fixtures), 'utf8');

/** The authority that signed the others. */
export const authority = pem('ca.pem');
/** For a server at `localhost` and 127.0.0.1. */
export const serverCertificate = { cert: pem('localhost.pem'), key: pem('localhost.key') };
/** For clients, with the name `gateway`. */
export const clientCertificate = { cert: pem('client.pem'), key: pem('client.key') };
/** For a server that serves only clients with such a certificate. */
export const demanding = {
  ...serverCertificate,
  ca: authority,
  requestCert: true,
  rejectUnauthorized: true,
};
