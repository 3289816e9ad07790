import { speechRoutes } from './audio/speech.js';
import { transcriptRoutes } from './audio/transcripts.js';
import { chatRoutes } from './chat/route.js';
import { completionsRoutes } from './completions/route.js';
import { embedContentRoutes } from './embeddings/embed-content.js';
import { embeddingsRoutes } from './embeddings/route.js';
import { generateContentRoutes } from './generate-content/route.js';
import type { Route } from './http/reply.js';
import { dashScopeRoutes } from './images/dashscope.js';
import { imageRoutes } from './images/openai.js';
import { resultRoutes } from './media/result.js';
import { messagesRoutes } from './messages/route.js';
import { moderationsRoutes } from './moderations/route.js';
import { rerankRoutes } from './rerank/route.js';
import { responsesRoutes } from './responses/route.js';
import { compatVideoRoutes } from './video/compat.js';
import { genericVideoRoutes } from './video/generic.js';
import type { VideoBook } from './video/task.js';
import { vendorjRoutes } from './video/vendorj.js';
import { vendorkRoutes } from './video/vendork.js';

/** All routes, except that of the simulator's own state. The first match serves a request. */
export function routesOf(book: VideoBook): readonly Route[] {
  return [
    ...chatRoutes,
    ...responsesRoutes,
    ...messagesRoutes,
    ...generateContentRoutes,
    ...completionsRoutes,
    ...embeddingsRoutes,
    ...embedContentRoutes,
    ...rerankRoutes,
    ...moderationsRoutes,
    ...transcriptRoutes,
    ...speechRoutes,
    ...imageRoutes,
    ...dashScopeRoutes,
    ...compatVideoRoutes(book),
    ...genericVideoRoutes(book),
    ...vendorkRoutes(book),
    ...vendorjRoutes(book),
    ...resultRoutes,
  ];
}
