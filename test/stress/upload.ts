import { type Growth, onMediaStage, warmUp, watched } from './media-stage.js';
import { type Uploaded, upload } from './tasks-media.js';

interface UploadPlan {
  readonly fileBytes: number;
  readonly warmUpSeconds: number;
  /** Pace of the client. Default: full speed. */
  readonly bytesPerSecond?: number;
}

interface UploadFigures extends Growth {
  readonly uploaded: Uploaded;
  /** The body as the upstream received it; null if it did not arrive completely. */
  readonly receivedBytes: number | null;
  readonly receivedSha256: string | null;
  readonly seconds: number;
}

/** One large form on its way to an upstream. */
export function uploadOnce(plan: UploadPlan): Promise<UploadFigures> {
  return onMediaStage(async (stage) => {
    await warmUp(stage, plan.warmUpSeconds);
    const before = stage.ears.received.length;
    const { result, growth, seconds } = await watched(stage, () =>
      upload(stage.gateway.port, plan.fileBytes, plan.bytesPerSecond),
    );
    const received = stage.ears.received[before];
    return {
      ...growth,
      uploaded: result,
      receivedBytes: received?.bytes ?? null,
      receivedSha256: received?.sha256 ?? null,
      seconds,
    };
  });
}
