/** Close codes of WebSockets (RFC 6455 section 7.4.1 and its registry). */
export const closeCode = {
  normal: 1000,
  goingAway: 1001,
  protocolError: 1002,
  /** Stands for a close frame without a code. Never sent. */
  noCode: 1005,
  /** Stands for a connection that ended without a close frame. Never sent. */
  broken: 1006,
  /** A text that is not UTF-8. */
  notUtf8: 1007,
  policy: 1008,
  tooBig: 1009,
  internal: 1011,
  restart: 1012,
  tryLater: 1013,
  badGateway: 1014,
} as const;
