/** Close codes (RFC 6455 section 7.4.1 and its registry). */
export const closeCode = {
  normal: 1000,
  goingAway: 1001,
  protocolError: 1002,
  noCode: 1005,
  broken: 1006,
  policy: 1008,
  tooBig: 1009,
  internal: 1011,
  restart: 1012,
  tryLater: 1013,
  badGateway: 1014,
} as const;
