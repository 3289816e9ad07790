import { hasEnded } from '../../video/advance.js';
import type { BookedTask } from '../../video/book.js';
import { askingAbout } from '../asking.js';
import type { Services } from '../services.js';
import type { Watched, WatchedWork } from '../upstream-watch.js';
import { refreshed } from './poll.js';

/** A task that has not ended by then is left to its clients: what it was charged stands. */
const watchedMs = 24 * 60 * 60 * 1000;

/** The video tasks that upstreams have taken. */
export function watchedTasks(services: Services): Watched {
  const { book } = services;
  return {
    mayBeAny: () => hasVideo(services),
    page: (limit, from) => book.underWay(limit, from),
    find: async (id) => {
      const booked = await book.find(id);
      const work = booked === null ? null : workOn(services, booked);
      if (work === null) await book.unwatch(id);
      return work;
    },
  };
}

/** @returns null for a task that needs nothing any more, or is too old */
function workOn(services: Services, booked: BookedTask): WatchedWork | null {
  const { task } = booked;
  const ageMs = Date.now() - task.createdAt;
  if (ageMs >= watchedMs) return null;
  if (!hasEnded(task))
    return {
      ageMs,
      upstream: task.upstream.name,
      claim: (ms) => services.book.claim('watch', task.id, ms),
      work: async (ask) => {
        const asking = askingAbout(services, task.model);
        await refreshed(services, asking, booked, (request) => ask(asking, request));
      },
    };
  if (task.state !== 'completed' || services.running.snapshot.videos === null) return null;
  return {
    ageMs,
    upstream: null,
    // Who wrote its end may not have heard that it did, or was killed before it had the video.
    claim: async () => true,
    work: async () => services.keepVideo(task),
  };
}

function hasVideo({ running }: Services): boolean {
  for (const { protocols } of running.snapshot.models.values()) if (protocols.has('video')) return true;
  return false;
}
