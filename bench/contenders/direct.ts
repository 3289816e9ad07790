import type { Contender } from './contender.js';

/** Nothing in between: what the load client and the upstream can do by themselves. */
export const direct: Contender = {
  name: 'direct',
  start: async ({ upstreamPort, answer }) => ({
    port: upstreamPort,
    prefix: `/${answer}`,
    path: `/${answer}/v1/chat/completions`,
    process: null,
  }),
};
