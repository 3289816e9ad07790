import type { Target } from '../../config/types.js';
import { isHttpUrl } from '../../conversation/media-source.js';
import type { ConversationRequest, MediaPart, UserPart } from '../../conversation/request.js';
import { GatewayError } from '../../errors.js';
import type { Translation } from '../../protocols/endpoint.js';
import { filePartOf } from '../../protocols/openai-shared/file-part.js';
import type { Downloaded } from '../../upstream/download.js';
import type { Call } from '../call.js';
import type { Services } from '../services.js';
import type { Cancellable } from './collect.js';
import { fetchFiles, mediaHosts } from './fetch-files.js';
import { translatedEndpoint } from './prepare.js';

/** Total bytes of all media of a call. */
const mostFetched = 20 * 1024 * 1024;
/** Media are in memory as base64, and in the text and the bytes of the body that is made with them: 4/3 bytes each time. */
const fetchCopies = 4;
const mostMedia = 32;
/** Milliseconds for each of them. */
const longestMs = 20_000;

interface MediaFetching {
  readonly request: ConversationRequest;
  readonly target: Target;
  /** The media that `mediaToFetch` has found, at least one. */
  readonly wanted: readonly RemotePart[];
  readonly waiting: Cancellable;
}

/**
 * Fetches the media of a conversation that are given by URL, for an upstream that accepts them only as bytes. Beside its
 * body, the call holds as much memory as they need, and in the end as much as the body that is written with them.
 * @returns the conversation with the bytes in it; never settles if `fetchFiles` does not
 * @throws {GatewayError} for the first that cannot be fetched
 */
export async function fetchMedia(
  services: Services,
  call: Call,
  { request, target, wanted, waiting }: MediaFetching,
): Promise<ConversationRequest> {
  const excess = wanted[mostMedia];
  if (excess !== undefined) throw tooManyMedia(excess);
  const maxBytes = Math.min(call.running.snapshot.limits.bodyBytes, mostFetched);
  const files = wanted.map(({ at, source: { url, mediaType } }) => ({ url, at, mediaType }));
  const hosts = mediaHosts(call, target.upstream);
  const bounds = { maxBytes, copies: fetchCopies, heldBefore: call.body?.length ?? 0, longestMs, hosts };
  const fetched = await fetchFiles(services, call, { wanted: files, bounds, waiting, keep: inBase64 });
  return withMedia(request, fetched);
}

/** Converts the bytes of a file to base64. */
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

/**
 * Lists the images and documents of a conversation that a target accepts only as bytes and that are given by URL, each URL
 * once.
 */
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

/** @param fetched the fetched sources, by their URLs */
export function withMedia(
  request: ConversationRequest,
  fetched: ReadonlyMap<string, MediaPart['source']>,
): ConversationRequest {
  const put = <Part extends UserPart>(part: Part): Part => {
    if (part.kind === 'toolResult') return { ...part, content: part.content.map(put) };
    if (part.kind === 'text' || part.source.kind !== 'url') return part;
    const source = fetched.get(part.source.url);
    if (source === undefined) return part;
    // Only its bytes show the type of a file.
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
