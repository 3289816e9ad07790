/** The form of `listen.host`. Apart from the schema, whose compilation the command line should not wait for. */
export const hostForm = {
  pattern: '^([A-Za-z0-9._-]+|[0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*(%[A-Za-z0-9._-]+)?)$',
  expected: 'an address or the name of a host, without scheme and port',
} as const;
