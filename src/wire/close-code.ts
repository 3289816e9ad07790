/** Codes with which a WebSocket closes (RFC 6455 section 7.4.1 and its registry). */
export const closeCode = {
  normal: 1000,
  goingAway: 1001,
  protocolError: 1002,
  /** Said of a close frame without a code, and never sent. */
  noCode: 1005,
  /** Said of a connection that ended without a close frame, and never sent. */
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
