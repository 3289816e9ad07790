import { isIP } from 'node:net';
import { performance } from 'node:perf_hooks';
import type { OwnSecrets, Upstream } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import { isFromProxy } from '../../http/client-address.js';
import { secretError } from '../../protocols/error-formats/vendor-account.js';
import { isPrivateName, isPublicAddress } from '../../upstream/address.js';
import type { BookedTask } from '../../video/book.js';
import type { ShowContext, TaskFailure, VideoTask } from '../../video/task.js';
import type { Call } from '../call.js';
import type { Services } from '../services.js';

/**
 * Finds a task for a call's key: its own, whichever secret it has by now, and those of the groups that share theirs.
 * @returns null when there is none that the key may see: the two look alike
 */
export async function findTask(services: Services, call: Call, id: string): Promise<BookedTask | null> {
  const booked = await services.book.find(id);
  if (booked === null || !maySee(call, booked.task)) return null;
  call.isOfTask = true;
  call.model = call.running.snapshot.models.get(booked.task.model) ?? null;
  return booked;
}

/** A group shares by the config in force now, what was made while it did not included. */
function maySee({ key, running }: Call, { keyId, groups }: VideoTask): boolean {
  if (key === null) return false;
  if (key.id === keyId) return true;
  return running.snapshot.groups.some(
    ({ name, shareVideos }) => shareVideos && key.groups.includes(name) && groups.includes(name),
  );
}

/** The 404 for a task that is not there, or not for this key. */
export function taskNotFound(id: string): GatewayError {
  const shown = id.length > 100 ? `${id.slice(0, 100)}…` : id;
  return new GatewayError('not_found', `There is no video task '${shown}' for this key.`, {
    param: 'task_id',
  });
}

/** The upstream that a task was submitted to, or null when the config has it no more. */
export function upstreamOf(call: Pick<Call, 'running'>, task: VideoTask): Upstream | null {
  return call.running.snapshot.upstreams.get(task.upstream.name) ?? null;
}

/** What is told in place of a task's failure whose words hold a secret of ours; null for one that may be told. */
export function secretOf(failure: TaskFailure | null, secrets: OwnSecrets): GatewayError | null {
  return failure === null ? null : secretError(`${failure.code}\n${failure.message}`, secrets);
}

/** A task as its clients are shown it: without an address that is of no use to them, in whose place is the gateway's. */
export function shownTask(call: Call, task: VideoTask): VideoTask {
  const { result } = task;
  if (result === null || result.url === null || isForClients(result.url, upstreamOf(call, task))) return task;
  return { ...task, result: { ...result, url: null } };
}

/** What a client format needs to know to show a task. */
export function showContext(call: Call, taskId: string): ShowContext {
  const { exchange } = call;
  return {
    requestId: exchange.id,
    elapsedMs: performance.now() - call.startedAt,
    contentUrl: `${ownUrl(call)}/v1/videos/${taskId}/content`,
  };
}

/**
 * Whether clients may be told the URL under which an upstream keeps a file: not one into the gateway's own network, or
 * on the upstream itself, which wants the gateway's credentials and is none of their business, nor one that holds them.
 * @param upstream null for one that the config has no more
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

/** A host as URLs have it, without the brackets of an IPv6 address and the dot that a name may end with. */
function bareHost(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
}

/**
 * Where the client of a call reaches the gateway: as the config says, else as its request does, or the trusted proxy
 * that the request came through.
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

/** Of several proxies the nearest one has spoken last, and it alone is known to be trusted. */
function lastOf(list: string): string {
  return list.slice(list.lastIndexOf(',') + 1).trim();
}

/** A host with or without a port, and nothing that would end it in a URL. */
function isAuthority(text: string): boolean {
  return /^(?:[\w.-]+|\[[\da-fA-F:.]+\])(?::\d{1,5})?$/.test(text);
}
