import { createHash } from 'node:crypto';
import {
  type Growth,
  type MediaStage,
  makeVideo,
  type Origin,
  onMediaStage,
  warmUp,
  watched,
} from './media-stage.js';
import { download, patternDigest } from './tasks-media.js';

interface VideoPlan {
  readonly origin: Origin;
  readonly bytes: number;
  readonly warmUpSeconds: number;
}

interface VideoFigures extends Growth {
  readonly status: number;
  /** Time of the answer's head. */
  readonly announced: number;
  readonly isEqual: boolean;
  /** Time of the whole download. */
  readonly seconds: number;
  /** A range from the middle: its status, and whether its bytes are right. */
  readonly partStatus: number;
  readonly partIsEqual: boolean;
  /** Whether a download that was interrupted and resumed has the bytes of the whole. */
  readonly resumedIsEqual: boolean;
}

/** One large video, read whole, in part, and in two pieces. */
export function downloads(plan: VideoPlan): Promise<VideoFigures> {
  return onMediaStage(async (stage) => {
    await warmUp(stage, plan.warmUpSeconds);
    const id = await makeVideo(stage, plan.origin, plan.bytes);
    const all = patternDigest({ from: 0, to: plan.bytes });
    const { result, growth } = await watched(stage, async () => {
      const begunAt = performance.now();
      const hash = createHash('sha256');
      const whole = await download({ port: stage.gateway.port, id, hash });
      const seconds = (performance.now() - begunAt) / 1000;
      const etag = whole.header('etag') ?? '';
      return {
        status: whole.status,
        announced: Number(whole.header('content-length')),
        isEqual: hash.digest('hex') === all,
        seconds,
        ...(await partOf(stage, id, plan.bytes)),
        resumedIsEqual: (await resumed(stage, id, { bytes: plan.bytes, etag })) === all,
      };
    });
    return { ...growth, ...result };
  });
}

async function partOf(
  { gateway }: MediaStage,
  id: string,
  bytes: number,
): Promise<Pick<VideoFigures, 'partStatus' | 'partIsEqual'>> {
  const from = Math.floor(bytes / 2) + 12_345;
  const to = from + Math.floor(bytes / 8);
  const hash = createHash('sha256');
  const lines = `range: bytes=${from}-${to - 1}\r\n`;
  const { status } = await download({ port: gateway.port, id, hash, lines });
  return { partStatus: status, partIsEqual: hash.digest('hex') === patternDigest({ from, to }) };
}

/** @returns the digest of both pieces together */
async function resumed(
  { gateway }: MediaStage,
  id: string,
  whole: { readonly bytes: number; readonly etag: string },
): Promise<string> {
  const { port } = gateway;
  const hash = createHash('sha256');
  const leaveAfter = Math.floor(whole.bytes / 3);
  const first = await download({ port, id, hash, leaveAfter });
  const lines = `range: bytes=${first.bytes}-\r\nif-range: ${whole.etag}\r\n`;
  const rest = await download({ port, id, hash, lines });
  return rest.status === 206 ? hash.digest('hex') : `status ${rest.status}`;
}
