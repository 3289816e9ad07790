import { speechRoutes } from './audio-speech.js';
import { transcriptRoutes } from './audio-transcripts.js';
import { imageRoutes } from './images.js';
import { dashScopeRoutes } from './images-dashscope.js';
import type { Route } from './reply.js';
import { resultRoutes } from './result-url.js';
import { compatVideoRoutes } from './video-compat.js';
import { genericVideoRoutes } from './video-generic.js';
import type { VideoLedger } from './video-ledger.js';
import { vendorjRoutes } from './video-vendorj.js';
import { vendorkRoutes } from './video-vendork.js';

/** The routes for audio, images and video, and for the files that were made. */
export function routesOfMedia(ledger: VideoLedger): readonly Route[] {
  return [
    ...transcriptRoutes,
    ...speechRoutes,
    ...imageRoutes,
    ...dashScopeRoutes,
    ...compatVideoRoutes(ledger),
    ...genericVideoRoutes(ledger),
    ...vendorkRoutes(ledger),
    ...vendorjRoutes(ledger),
    ...resultRoutes,
  ];
}
