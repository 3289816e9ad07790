import { completionsRoute } from './completions.js';
import { embeddingsRoute } from './embeddings.js';
import { moderationsRoute } from './moderations.js';
import type { Route } from './reply.js';
import { rerankRoute } from './rerank.js';

/** The routes of the protocols that take one input and hold no conversation. */
export const smallRoutes: readonly Route[] = [
  completionsRoute,
  embeddingsRoute,
  rerankRoute,
  moderationsRoute,
];
