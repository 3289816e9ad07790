import { isIP } from 'node:net';
import { performance } from 'node:perf_hooks';
import type { OwnSecrets, Upstream } from '../../config/types.js';
import { GatewayError, shortened } from '../../errors.js';
import { isFromProxy } from '../../http/client-address.js';
import { secretError } from '../../protocols/error-formats/vendor-account.js';
import { isPrivateName, isPublicAddress } from '../../upstream/address.js';
import type { BookedTask } from '../../video/book.js';
import type { ShowContext, TaskFailure, VideoTask } from '../../video/task.js';
import type { Call } from '../call.js';
import type { Services } from '../services.js';

/**
 * Finds a task that a call's key may see. A key sees its own tasks, also after its secret was rotated, and the tasks of
 * its groups that share videos.
 * @returns null when the task does not exist or the key may not see it; clients cannot tell the two apart
 */
export async function findTask(services: Services, call: Call, id: string): Promise<BookedTask | null> {
  const booked = await services.book.find(id);
  if (booked === null || !maySee(call, booked.task)) return null;
  call.isOfTask = true;
  call.model = call.running.snapshot.models.get(booked.task.model) ?? null;
  return booked;
}

/** The config in force now decides whether a group shares: also for tasks made while the group did not share. */
function maySee({ key, running }: Call, { keyId, groups }: VideoTask): boolean {
  if (key === null) return false;
  if (key.id === keyId) return true;
  return running.snapshot.groups.some(
    ({ name, shareVideos }) => shareVideos && key.groups.includes(name) && groups.includes(name),
  );
}

/** The 404 for a task that does not exist, or that this key may not see. */
export function taskNotFound(id: string): GatewayError {
  const message = `There is no video task '${shortened(id, 100)}' for this key.`;
  return new GatewayError('not_found', message, { param: 'task_id' });
}

/** The upstream that a task was submitted to, or null when it is no longer in the config. */
export function upstreamOf(call: Pick<Call, 'running'>, task: VideoTask): Upstream | null {
  return call.running.snapshot.upstreams.get(task.upstream.name) ?? null;
}

/** Returns the error that replaces a task's failure whose text contains one of our secrets; null for any other. */
export function secretOf(failure: TaskFailure | null, secrets: OwnSecrets): GatewayError | null {
  return failure === null ? null : secretError(`${failure.code}\n${failure.message}`, secrets);
}

/** A task as clients see it. A URL that they may not have is left out; the client format then shows the gateway's. */
export function shownTask(call: Call, task: VideoTask): VideoTask {
  if (task.result === null) return task;
  const upstream = upstreamOf(call, task);
  const { url, others } = task.result;
  return {
    ...task,
    result: {
      ...withShownMark(task.result, upstream),
      url: url !== null && isForClients(url, upstream) ? url : null,
      ...(others === undefined
        ? {}
        : {
            others: others
              .filter((other) => isForClients(other.url, upstream))
              .map((other) => withShownMark(other, upstream)),
          }),
    },
  };
}

function withShownMark<Video extends { readonly watermarkUrl?: string }>(
  video: Video,
  upstream: Upstream | null,
): Omit<Video, 'watermarkUrl'> & { readonly watermarkUrl?: string } {
  const { watermarkUrl, ...rest } = video;
  return watermarkUrl !== undefined && isForClients(watermarkUrl, upstream) ? video : rest;
}

/** The context that a client format needs to render a task. */
export function showContext(call: Call, taskId: string): ShowContext {
  const { exchange } = call;
  return {
    requestId: exchange.id,
    elapsedMs: performance.now() - call.startedAt,
    contentUrl: `${ownUrl(call)}/v1/videos/${taskId}/content`,
  };
}

/**
 * Whether clients may have the URL under which an upstream keeps a file. They may not if it points into the gateway's
 * own network, points at the upstream itself (which requires the gateway's credentials), or contains credentials.
 * @param upstream null if it is no longer in the config
 */
export function isForClients(url: string, upstream: Upstream | null): boolean {
  if (upstream?.fetchPrivate === true || !URL.canParse(url)) return false;
  const { protocol, hostname, username, password } = new URL(url);
  if ((protocol !== 'http:' && protocol !== 'https:') || username !== '' || password !== '') return false;
  const host = bareHost(hostname);
  if (upstream !== null && (host === hostOf(upstream) || holdsKey(url, upstream))) return false;
  if (isIP(host) !== 0) return isPublicAddress(host);
  return !isPrivateName(host);
}

function holdsKey(url: string, { secrets }: Upstream): boolean {
  return secretError(url, secrets)?.vendorAccountStatus === 401;
}

function hostOf({ origin }: Upstream): string {
  return bareHost(new URL(`http://${origin.authority}`).hostname);
}

/** The host of a URL without the brackets of an IPv6 address and without a trailing dot. */
function bareHost(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
}

/**
 * The base URL under which the client of a call reaches the gateway: `publicUrl` of the config if it is set, else the
 * scheme and host that a trusted proxy forwarded, else those of the request.
 * @returns a URL without a path
 */
export function ownUrl({ exchange, running }: Call): string {
  const { listen } = running.snapshot;
  if (listen.publicUrl !== null) return listen.publicUrl;
  const { host, peer, forwardedProto, forwardedHost } = exchange.head;
  const isProxied = peer !== null && running.proxies !== null && isFromProxy(peer, running.proxies);
  const scheme = isProxied ? lastOf(forwardedProto).toLowerCase() : '';
  const authority = isProxied ? lastOf(forwardedHost) : '';
  const ownScheme = listen.tls === null ? 'http' : 'https';
  return `${schemes.has(scheme) ? scheme : ownScheme}://${isAuthority(authority) ? authority : host}`;
}

const schemes: ReadonlySet<string> = new Set(['http', 'https']);

/** The last entry of a list is from the nearest proxy, the only one known to be trusted. */
function lastOf(list: string): string {
  return list.slice(list.lastIndexOf(',') + 1).trim();
}

/** Whether a text is a host with an optional port, with no character that would end the authority of a URL. */
function isAuthority(text: string): boolean {
  return /^(?:[\w.-]+|\[[\da-fA-F:.]+\])(?::\d{1,5})?$/.test(text);
}
