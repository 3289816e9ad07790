/** What is shown to a server that asks for a certificate (RFC 8446 section 4.4.2), as PEM texts. */
export interface ClientCertificate {
  /** The certificate and its chain. */
  readonly cert: string;
  readonly key: string;
}

/** A proxy that opens tunnels: CONNECT, RFC 9110 section 9.3.6. */
export interface EgressProxy {
  /** Equal for two proxies exactly when a tunnel of one may serve the other. Holds no credential in clear. */
  readonly identity: string;
  /** The proxy itself is spoken to over TLS. */
  readonly secure: boolean;
  readonly host: string;
  readonly port: number;
  /** PEM text of a certificate authority to trust for the proxy instead of the system's, or null. */
  readonly ca: string | null;
  /** Value of `proxy-authorization`, or null. */
  readonly authorization: string | null;
}

/** What makes two upstreams the same for the reuse of a connection: all of these fields, through `identity`. */
export interface Origin {
  /** Equal for two origins exactly when a connection of one may serve the other. */
  readonly identity: string;
  readonly secure: boolean;
  /** Name or address to connect to. */
  readonly host: string;
  readonly port: number;
  /** Value of the `host` header: with the port unless it is the scheme's default. */
  readonly authority: string;
  /** Name for SNI and for the certificate check; null for plain origins. */
  readonly serverName: string | null;
  /** PEM text of a certificate authority to trust instead of the system's, or null. */
  readonly ca: string | null;
  /** Shown to the origin where it asks for one, or null. */
  readonly clientCertificate: ClientCertificate | null;
  /** Through which it is reached, or null where it is reached directly. */
  readonly proxy: EgressProxy | null;
  /** False only when the config says so for this upstream. */
  readonly verify: boolean;
  /** Most connections to this origin from one worker. */
  readonly maxConnections: number;
  /** Most requests that wait for a connection of this origin in one worker. */
  readonly maxWaiting: number;
}
