import { videoFaces } from '../../video/formats.js';
import type { VideoFormat } from '../../video/task.js';
import { answerJson, attend } from '../attend.js';
import type { Call } from '../call.js';
import type { Services } from '../services.js';
import { findTask, showContext, shownTask, taskNotFound } from './answer.js';
import { refreshed } from './poll.js';

/** Answers how a task stands, in the format in which it was asked, whichever it was made in. */
export function showTask(services: Services, call: Call, format: VideoFormat, id: string): void {
  const face = videoFaces[format];
  attend(services, call, async (waiting) => {
    const booked = await findTask(services, call, id);
    const context = showContext(call, id);
    if (booked === null) {
      const missing = face.missing(id, context);
      if (missing === null) throw taskNotFound(id);
      answerJson(services, call, 200, missing);
      return;
    }
    const task = await refreshed(services, call, waiting, booked);
    answerJson(services, call, 200, face.shown(shownTask(call, task), context));
  });
}
