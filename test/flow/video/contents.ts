import type { Test } from 'tap';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { compat } from '../../support/media/client-formats.js';
import { ask, type Heard, type MediaRequest, mediaConfig } from '../../support/media/gateway.js';
import { ended, make } from '../../support/media/videos.js';
import { jsonAnswer, type RawRequest, type RawUpstream, startRawUpstream } from '../../support/upstream.js';

/** How a task's bytes are had: from the upstream itself, or from an address that it tells. */
export type SourceKind = 'chat' | 'generic';

export interface ContentStage {
  readonly gateway: RunningGateway;
  readonly upstream: RawUpstream;
  readonly id: string;
  readonly path: string;
  /** Requests for the bytes. */
  contents(): readonly RawRequest[];
  get(headers?: Record<string, string>, more?: MediaRequest & { readonly method?: string }): Promise<Heard>;
}

export interface ContentOptions {
  readonly kind?: SourceKind;
  /** Where the upstream says that the video is; on itself unless given. */
  readonly url?: (upstream: string) => string;
  /** More of the upstream's config. */
  readonly upstream?: Record<string, unknown>;
  readonly config?: Record<string, unknown>;
  /** In which the video is kept or given up. */
  readonly keepVideoMs?: number | undefined;
}

/** A gateway with a finished task, whose bytes an upstream serves as it is told. */
export async function startContent(
  t: Test,
  answer: (request: RawRequest, index: number) => void,
  {
    kind = 'chat',
    url = (own) => `${own}/file.mp4?sig=1`,
    upstream: more = {},
    config = {},
    keepVideoMs,
  }: ContentOptions = {},
): Promise<ContentStage> {
  const contents: RawRequest[] = [];
  const upstream = await startRawUpstream(t, (request) => {
    const { head, socket } = request;
    if (head.startsWith('POST ')) socket.write(jsonAnswer(200, '{"id":"theirs","task_id":"theirs"}'));
    else if (/^GET \/v1\/(?:videos|video\/generations)\/theirs HTTP/.test(head)) {
      const task = { id: 'theirs', task_id: 'theirs', status: 'completed', url: url(upstream.url) };
      socket.write(jsonAnswer(200, JSON.stringify(task)));
    } else {
      contents.push(request);
      answer(request, contents.length - 1);
    }
  });
  const gateway = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: { u: { kind, baseUrl: upstream.url, ...more } },
      models: { m: { protocols: ['video'], targets: [{ upstream: 'u', model: 'real' }] } },
      config,
    }),
    keepVideoMs,
  });
  const id = await make(compat, gateway, 'm', 'a fox');
  await ended(compat, gateway, id);
  const path = `/v1/videos/${id}/content`;
  return {
    gateway,
    upstream,
    id,
    path,
    contents: () => contents,
    get: (headers = {}, { method = 'GET', ...rest } = {}) => ask(gateway, method, path, { headers, ...rest }),
  };
}

/** An answer with a body and its length. */
export function fileAnswer(body: Buffer, status = 200, lines = ''): Buffer {
  const head = `HTTP/1.1 ${status} X\r\ncontent-type: video/mp4\r\n${lines}content-length: ${body.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), body]);
}
