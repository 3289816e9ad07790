/** The certificate for servers that request one (RFC 8446 section 4.4.2), as PEM texts. */
export interface ClientCertificate {
  /** The certificate and its chain. */
  readonly cert: string;
  readonly key: string;
}

/** A proxy that opens tunnels with CONNECT (RFC 9110 section 9.3.6). */
export interface EgressProxy {
  /** Equal for two proxies exactly when a tunnel of one may serve the other. Contains no credential in plain text. */
  readonly identity: string;
  /** True when the connection to the proxy itself uses TLS. */
  readonly secure: boolean;
  readonly host: string;
  readonly port: number;
  /** PEM text of a certificate authority to trust for the proxy instead of the system's, or null. */
  readonly ca: string | null;
  /** Value of `proxy-authorization`, or null. */
  readonly authorization: string | null;
}

/** Where and how an upstream is reached. Upstreams whose `identity` is equal share connections. */
export interface Origin {
  /** Equal for two origins exactly when a connection of one may serve the other. */
  readonly identity: string;
  readonly secure: boolean;
  /** Name or address to connect to. */
  readonly host: string;
  readonly port: number;
  /** Value of the `host` header, with the port unless it is the scheme's default. */
  readonly authority: string;
  /** Name for SNI and for the certificate check; null for plain origins. */
  readonly serverName: string | null;
  /** PEM text of a certificate authority to trust instead of the system's, or null. */
  readonly ca: string | null;
  /** Certificate to present if the origin requests one, or null. */
  readonly clientCertificate: ClientCertificate | null;
  /** Proxy through which the origin is reached, or null for a direct connection. */
  readonly proxy: EgressProxy | null;
  /** Whether the certificate is verified. False only if the config says so for this upstream. */
  readonly verify: boolean;
  /**
   * Whether connections and session tickets are kept for later requests. Not for servers that clients name, which would
   * displace those of upstreams.
   */
  readonly isKept: boolean;
  /** Maximum number of connections from one worker to this origin. */
  readonly maxConnections: number;
  /** Maximum number of requests in one worker that wait for a connection to this origin. */
  readonly maxWaiting: number;
}
