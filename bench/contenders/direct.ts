import type { Contender } from './contender.js';

/** Nothing in between: the limit of the load client and the upstream themselves. */
export const direct: Contender = {
  name: 'direct',
  start: async ({ upstreamPort, upstreamTls = false, answer }) => ({
    port: upstreamPort,
    secure: upstreamTls,
    prefix: `/${answer}`,
    path: `/${answer}/v1/chat/completions`,
    process: null,
  }),
};
