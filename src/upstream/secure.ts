/** TLS toward upstreams: contexts and session tickets per origin identity, and descriptions of failures. */
import { isIP, type OnReadOpts, type Socket } from 'node:net';
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

/** The peer of a TLS connection: an origin, or the proxy before it. */
export type SecurePeer = Pick<
  Origin,
  'identity' | 'host' | 'port' | 'serverName' | 'ca' | 'clientCertificate' | 'verify' | 'isKept'
>;

/** Maximum number of stored profiles. The one that was used least recently is dropped first. */
const maxProfiles = 256;

/** State that the connections of one identity share. */
interface SecureProfile {
  readonly context: SecureContext;
  /** The newest session ticket, or null. */
  session: Buffer | null;
  /** When the last certificate that was accepted expires, in Unix milliseconds. */
  validUntil: number;
}

export type SecureProfiles = (peer: SecurePeer) => SecureProfile;

/** Creates a store of profiles. The returned function throws for an invalid PEM text. */
export function createSecureProfiles(): SecureProfiles {
  const profiles = new Map<string, SecureProfile>();
  return (peer) => {
    const known = profiles.get(peer.identity);
    if (known !== undefined) {
      profiles.delete(peer.identity);
      profiles.set(peer.identity, known);
      return known;
    }
    const profile: SecureProfile = {
      context: createSecureContext({
        ...(peer.ca === null ? {} : { ca: peer.ca }),
        ...peer.clientCertificate,
      }),
      session: null,
      validUntil: Number.POSITIVE_INFINITY,
    };
    if (!peer.isKept) return profile;
    if (profiles.size >= maxProfiles) {
      const [oldest] = profiles.keys();
      if (oldest !== undefined) profiles.delete(oldest);
    }
    profiles.set(peer.identity, profile);
    return profile;
  };
}

/** A method that Node's own `connect` calls, and that its types omit. */
interface WithSession {
  setSession(session: Buffer): void;
}

interface Means {
  readonly names: Pick<NameCache, 'lookup'>;
  readonly secureProfiles: SecureProfiles;
}

/**
 * Opens a TLS connection. The certificate is checked against the peer's server name unless `verify` is off.
 * @param onread receives the data; without it the connection is read as a stream
 */
export function connectSecure(
  peer: SecurePeer,
  { names, secureProfiles }: Means,
  onread?: OnReadOpts,
): TLSSocket {
  const profile = secureProfiles(peer);
  const options: ConnectionOptions & { onread: OnReadOpts | undefined } = {
    host: peer.host,
    port: peer.port,
    lookup: names.lookup,
    ...handshakeOptions(peer, profile),
    onread,
  };
  const socket = connect(options) as TLSSocket & WithSession;
  socket.setNoDelay(true);
  // If a name has several addresses, Node creates the TLS part again for the address that it uses, without the ticket
  // and the listener for the next one.
  socket.prependOnceListener('connect', () => {
    const { session } = options;
    if (session !== undefined) socket.setSession(session);
    keepTickets(socket, profile);
  });
  return socket;
}

/**
 * Opens a TLS connection inside a tunnel, which ends together with the returned socket. It is read as a stream.
 * @param tunnel must have no other reader
 */
export function secureTunnel(tunnel: Socket, peer: SecurePeer, secureProfiles: SecureProfiles): TLSSocket {
  const profile = secureProfiles(peer);
  const socket = connect({ socket: tunnel, ...handshakeOptions(peer, profile) });
  keepTickets(socket, profile);
  return socket;
}

function handshakeOptions(peer: SecurePeer, profile: SecureProfile): ConnectionOptions {
  const name = peer.serverName ?? peer.host;
  return {
    // RFC 6066 section 3: an address must not be sent as server name.
    servername: isIP(name) === 0 ? name : '',
    secureContext: profile.context,
    // A resumed handshake shows no certificate, and each brings a new ticket: one that has expired would pass for ever.
    session: Date.now() >= profile.validUntil ? undefined : (profile.session ?? undefined),
    rejectUnauthorized: peer.verify,
    checkServerIdentity(_host, certificate) {
      profile.validUntil = Date.parse(certificate.valid_to);
      return checkServerIdentity(name, certificate);
    },
    ALPNProtocols: ['http/1.1'],
  };
}

function keepTickets(socket: TLSSocket, profile: SecureProfile): void {
  socket.on('session', (ticket: Buffer) => {
    profile.session = ticket;
  });
}

/** Describes why a handshake failed. */
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
