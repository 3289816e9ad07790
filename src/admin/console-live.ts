import type { LiveStream } from './live-stream.js';
import type { AdminRoute } from './routes.js';

/** What is going on, as it happens: see `live-state.ts`. */
export function liveRoutes(live: LiveStream): readonly AdminRoute[] {
  return [
    {
      method: 'GET',
      path: '/console/live',
      needsToken: true,
      handle: () => {
        live.checkRoom();
        return {
          status: 200,
          contentType: 'text/event-stream',
          // A proxy before the listener is not to gather events.
          headers: { 'x-accel-buffering': 'no' },
          body: (response) => live.watch(response),
        };
      },
    },
  ];
}
