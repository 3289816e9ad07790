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
  /** False only when the config says so for this upstream. */
  readonly verify: boolean;
  /** Most connections to this origin from one worker. */
  readonly maxConnections: number;
  /** Most requests that wait for a connection of this origin in one worker. */
  readonly maxWaiting: number;
}
