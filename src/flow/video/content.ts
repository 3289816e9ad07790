import { GatewayError } from '../../errors.js';
import { videoWires } from '../../video/formats.js';
import type { VideoTask } from '../../video/task.js';
import { type VideoVariant, videoVariant } from '../../video/variants.js';
import { queryParameter } from '../../wire/query.js';
import { matchesTag, parseRange } from '../../wire/range.js';
import { account } from '../account.js';
import { attend } from '../attend.js';
import type { AuthenticatedCall, Call } from '../call.js';
import type { Services } from '../services.js';
import { timingLine } from '../timing.js';
import { findTask, taskNotFound, upstreamOf } from './answer.js';
import { ContentRelay, type ContentSource } from './content-relay.js';
import { refreshed } from './poll.js';

/** Answers with a finished task's video, or part of it, straight from where its upstream keeps it. */
export function serveContent(services: Services, call: AuthenticatedCall, id: string): void {
  const { head } = call.exchange;
  const variant = videoVariant(queryParameter(head.query, 'variant'));
  attend(services, call, async (waiting) => {
    const booked = await findTask(services, call, id);
    if (booked === null) throw taskNotFound(id);
    const task = await refreshed(services, call, waiting, booked);
    if (call.accounted) return;
    call.bodyAt = call.authenticatedAt;
    if (task.state !== 'completed') throw notFinished(task);
    // A finished video never changes, so its name is enough to tell one version from another.
    const tag = `"${id}-${variant.name}"`;
    const lines = `\r\naccept-ranges: bytes\r\netag: ${tag}\r\ncache-control: private, max-age=86400`;
    if (head.ifNoneMatch !== '' && matchesTag(head.ifNoneMatch, tag)) {
      call.exchange.respondEmpty(304, lines + timingLine(call), null);
      account(services, call, 'complete');
      return;
    }
    const holds = head.ifRange === '' || head.ifRange === tag;
    new ContentRelay(services, call, {
      source: sourceOf(call, task, variant),
      range: holds && call.exchange.method === 'GET' ? parseRange(head.range) : null,
      contentType: variant.contentType,
      lines,
    }).start();
  });
}

/** @throws {GatewayError} `not_found` where there is nothing to fetch */
function sourceOf(call: Call, task: VideoTask, variant: VideoVariant): ContentSource {
  const upstream = upstreamOf(call, task);
  if (upstream === null)
    throw new GatewayError('not_found', 'The upstream that made this video is not in the config any more.');
  const path = videoWires[task.upstream.format].content(task, variant.name);
  if (path !== null) {
    const { model, credential } = task.upstream;
    return { kind: 'path', upstream, path, model, credential };
  }
  const url = variant.name === 'video' ? task.result?.url : null;
  if (url === null || url === undefined) {
    throw new GatewayError('not_found', `The upstream has no ${variant.name} of this video.`, {
      param: variant.name === 'video' ? null : 'variant',
    });
  }
  return { kind: 'url', upstream, url };
}

function notFinished({ id, state, error }: VideoTask): GatewayError {
  if (state === 'failed')
    return new GatewayError('not_found', `The video task '${id}' has failed: ${error?.message ?? ''}`);
  return new GatewayError('not_found', `The video task '${id}' is not finished yet, try again later.`);
}
