/** TLS toward upstreams: contexts and session tickets kept per origin identity, and failures in plain words. */
import { isIP, type OnReadOpts } from 'node:net';
import {
  type ConnectionOptions,
  checkServerIdentity,
  connect,
  createSecureContext,
  type SecureContext,
  type TLSSocket,
} from 'node:tls';
import type { NameCache } from './names.js';
import type { Origin } from './origin.js';

/** Identities remembered at most; the one remembered longest ago goes first. */
const maxProfiles = 256;

/** What is worth keeping between two connections of one identity. */
export interface SecureProfile {
  readonly context: SecureContext;
  /** The newest session ticket, or null. */
  session: Buffer | null;
}

export type SecureProfiles = (origin: Origin) => SecureProfile;

/** Makes the store of profiles of one client. The function it gives throws when the CA text is no PEM. */
export function createSecureProfiles(): SecureProfiles {
  const profiles = new Map<string, SecureProfile>();
  return (origin) => {
    const known = profiles.get(origin.identity);
    if (known !== undefined) return known;
    const profile: SecureProfile = {
      context: createSecureContext(origin.ca === null ? {} : { ca: origin.ca }),
      session: null,
    };
    if (profiles.size >= maxProfiles) {
      const [oldest] = profiles.keys();
      if (oldest !== undefined) profiles.delete(oldest);
    }
    profiles.set(origin.identity, profile);
    return profile;
  };
}

/** What Node's own `connect` calls, and its types leave out. */
interface WithSession {
  setSession(session: Buffer): void;
}

/**
 * Opens a TLS connection. The certificate is checked against the origin's server name unless `verify` is off.
 * @param onread takes what is read; without it the connection is read as a stream
 */
export function connectSecure(
  origin: Origin,
  { names, secureProfiles }: { readonly names: NameCache; readonly secureProfiles: SecureProfiles },
  onread?: OnReadOpts,
): TLSSocket {
  const profile = secureProfiles(origin);
  const name = origin.serverName ?? origin.host;
  const options: ConnectionOptions & { onread: OnReadOpts | undefined } = {
    host: origin.host,
    port: origin.port,
    lookup: names.lookup,
    // RFC 6066 section 3: an address is no server name.
    servername: isIP(name) === 0 ? name : '',
    secureContext: profile.context,
    session: profile.session ?? undefined,
    rejectUnauthorized: origin.verify,
    checkServerIdentity: (_host, certificate) => checkServerIdentity(name, certificate),
    ALPNProtocols: ['http/1.1'],
    onread,
  };
  const socket = connect(options) as TLSSocket & WithSession;
  socket.setNoDelay(true);
  // Where a name has several addresses, Node makes the TLS part anew for the one that it takes, which knows of neither
  // the ticket nor who listens for the next one.
  socket.prependOnceListener('connect', () => {
    const { session } = options;
    if (session !== undefined) socket.setSession(session);
    socket.on('session', (ticket: Buffer) => {
      profile.session = ticket;
    });
  });
  return socket;
}

/** Says why a handshake failed. */
export function tlsFailureDetail(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'CERT_HAS_EXPIRED':
      return 'the certificate has expired';
    case 'CERT_NOT_YET_VALID':
      return 'the certificate is not valid yet';
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'SELF_SIGNED_CERT_IN_CHAIN':
      return 'the certificate is self-signed';
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
    case 'UNABLE_TO_GET_ISSUER_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
      return 'the certificate was issued by an unknown authority';
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return `the certificate is for another name: ${error.message}`;
    default:
      return `TLS handshake failed: ${error.code ?? error.message}`;
  }
}
