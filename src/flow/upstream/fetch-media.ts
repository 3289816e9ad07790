import type { Target } from '../../config/types.js';
import { isHttpUrl } from '../../conversation/media-source.js';
import type { ConversationRequest, MediaPart, UserPart } from '../../conversation/request.js';
import { GatewayError } from '../../errors.js';
import type { Translation } from '../../protocols/endpoint.js';
import { filePartOf } from '../../protocols/openai-shared/file-part.js';
import type { Downloaded } from '../../upstream/download.js';
import type { Call } from '../call.js';
import { holdInAll } from '../memory-budget.js';
import type { Services } from '../services.js';
import type { Waiter } from './ask.js';
import { fetchFiles, mediaHosts } from './fetch-files.js';
import { translatedEndpoint } from './prepare.js';

/** Bytes of all media of a call. */
const mostFetched = 20 * 1024 * 1024;
/** They are in memory in base64, and in the text and the bytes of the body that is made of them. */
const fetchedCopies = 3;
/** As many bytes as came, in base64. */
const fetchCopies = (fetchedCopies * 4) / 3;
/** One call may not take more than this part of what a worker may hold. */
const fetchShare = 8;
const mostMedia = 32;
/** For one of them. */
const longestMs = 20_000;

interface MediaFetching {
  readonly request: ConversationRequest;
  readonly target: Target;
  /** What `mediaToFetch` has found in it, at least one. */
  readonly wanted: readonly RemotePart[];
  readonly waiting: Waiter;
}

/**
 * Fetches the media of a conversation that are given by URL, for an upstream that takes them only as bytes. The call holds
 * as much memory beside its body as they take up, and in the end as the body will that is written with them.
 * @returns the conversation with the bytes in it; never settles where `fetchFiles` does not
 * @throws {GatewayError} for the first that cannot be had
 */
export async function fetchMedia(
  services: Services,
  call: Call,
  { request, target, wanted, waiting }: MediaFetching,
): Promise<ConversationRequest> {
  const excess = wanted[mostMedia];
  if (excess !== undefined) throw tooManyMedia(excess);
  const { bodyBytes, bufferedBytes } = call.running.snapshot.limits;
  const maxBytes = Math.min(bodyBytes, mostFetched, Math.floor(bufferedBytes / (fetchShare * fetchCopies)));
  const files = wanted.map(({ at, source: { url, mediaType } }) => ({ url, at, mediaType }));
  const body = call.body?.length ?? 0;
  let held = 0;
  const hold = (bytes: number): void => {
    held = bytes;
    holdInAll(services, call, body + bytes);
  };
  const bounds = { maxBytes, longestMs, hosts: mediaHosts(call, target.upstream), hold };
  try {
    const fetched = await fetchFiles(services, call, { wanted: files, bounds, waiting, keep: inBase64 });
    if (!call.accounted) holdInAll(services, call, body + fetchedCopies * held);
    return withMedia(request, fetched);
  } catch (fault) {
    if (!call.accounted) holdInAll(services, call, body);
    throw fault;
  }
}

/** The bytes of a file become base64. */
function inBase64(
  { bytes, mediaType }: Downloaded,
  wanted: { readonly mediaType: string | null },
  hold: (bytes: number) => void,
): { readonly kept: MediaPart['source']; readonly bytes: number } {
  const size = 4 * Math.ceil(bytes.length / 3);
  hold(bytes.length + size);
  const data = bytes.toString('base64');
  hold(size);
  const type = wanted.mediaType ?? mediaType ?? 'application/octet-stream';
  return { kept: { kind: 'data', mediaType: type, data }, bytes: size };
}

function tooManyMedia(part: MediaPart): GatewayError {
  return new GatewayError(
    'invalid_value',
    `${part.at}: at most ${mostMedia} media of a call are fetched by URL.`,
    {
      param: part.at,
    },
  );
}

/** The images and documents of a conversation that a target wants as bytes and that are given by URL, each URL once. */
export function mediaToFetch(
  { turns }: ConversationRequest,
  target: Target,
  { codec }: Translation,
): readonly RemotePart[] {
  if (translatedEndpoint(target, codec.rules.protocol).translation.mediaByUrl) return [];
  const found = new Map<string, RemotePart>();
  const look = (part: UserPart): void => {
    if (part.kind === 'toolResult') {
      for (const each of part.content) look(each);
    } else if (isRemote(part) && !found.has(part.source.url)) {
      found.set(part.source.url, part);
    }
  };
  for (const turn of turns) if (turn.role === 'user') for (const part of turn.parts) look(part);
  return [...found.values()];
}

/** An image or document that is given by URL. */
export type RemotePart = MediaPart & { readonly source: { readonly kind: 'url'; readonly url: string } };

function isRemote(part: UserPart): part is RemotePart {
  return (
    (part.kind === 'image' || part.kind === 'document') &&
    part.source.kind === 'url' &&
    isHttpUrl(part.source.url)
  );
}

/** @param fetched the sources of what was given by URL, by their URLs */
export function withMedia(
  request: ConversationRequest,
  fetched: ReadonlyMap<string, MediaPart['source']>,
): ConversationRequest {
  const put = <Part extends UserPart>(part: Part): Part => {
    if (part.kind === 'toolResult') return { ...part, content: part.content.map(put) };
    if (part.kind === 'text' || part.source.kind !== 'url') return part;
    const source = fetched.get(part.source.url);
    if (source === undefined) return part;
    // What a file is, only its bytes have told.
    return part.kind === 'document'
      ? { ...part, ...filePartOf(source, part.name, part.at) }
      : { ...part, source };
  };
  return {
    ...request,
    turns: request.turns.map((turn) =>
      turn.role === 'user' ? { ...turn, parts: turn.parts.map(put) } : turn,
    ),
  };
}
