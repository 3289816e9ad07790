import type { HttpRequest, HttpResponse, TemplatedApp } from 'uWebSockets.js';

/** Length of the video of every task. */
export const videoBytes = 256 * 1024 * 1024;
/** Length of the file in every upload. */
export const uploadBytes = 64 * 1024 * 1024;

const block = Buffer.alloc(1024 * 1024, 'x');
/** Blocks of one video that are written before the others have their turn. */
const blocksPerTurn = 4;

const task = JSON.stringify({
  id: 'bench',
  object: 'video',
  model: 'bench-model',
  status: 'completed',
  progress: 100,
  created_at: 1_760_000_000,
  completed_at: 1_760_000_060,
  seconds: '8',
  size: '1280x720',
});
const transcript = JSON.stringify({
  text: 'The quick brown fox jumps over the lazy dog.',
  usage: { type: 'duration', seconds: 2 },
});

/**
 * Adds the routes of `media`: video tasks that are complete at once, their content, and transcriptions.
 * @param app its paths begin with `/media/v1`
 */
export function addMedia(app: TemplatedApp): void {
  app
    .post('/media/v1/videos', (res) => afterBody(res, () => sendJson(res, '200 OK', task)))
    .get('/media/v1/videos/:id', (res) => sendJson(res, '200 OK', task))
    .get('/media/v1/videos/:id/content', sendVideo)
    .post('/media/v1/audio/transcriptions', (res) => {
      afterBody(res, (bytes) => {
        if (bytes > uploadBytes) sendJson(res, '200 OK', transcript);
        else sendJson(res, '422 Unprocessable Entity', `{"error":{"message":"${bytes} bytes arrived"}}`);
      });
    });
}

function sendJson(res: HttpResponse, status: string, body: string): void {
  res.cork(() => {
    res.writeStatus(status);
    res.writeHeader('content-type', 'application/json');
    res.end(body);
  });
}

/** Counts and discards a body. */
function afterBody(res: HttpResponse, then: (bytes: number) => void): void {
  let bytes = 0;
  res.onAborted(() => {});
  res.onData((chunk, isLast) => {
    bytes += chunk.byteLength;
    if (isLast) then(bytes);
  });
}

/** Writes one block repeatedly, as fast as the client reads it. */
function sendVideo(res: HttpResponse, _req: HttpRequest): void {
  let over = false;
  res.onAborted(() => {
    over = true;
  });
  /** Must be called in a cork, or in uWS's `onWritable`. */
  const send = (): boolean => {
    for (let turn = 0; turn < blocksPerTurn && !over; turn += 1) {
      const offset = res.getWriteOffset();
      const piece = block.subarray(offset % block.length, (offset % block.length) + videoBytes - offset);
      const [taken, done] = res.tryEnd(piece, videoBytes);
      over = done;
      if (!taken) return false;
    }
    if (!over) setImmediate(sendCorked);
    return true;
  };
  const sendCorked = (): void => {
    if (!over) res.cork(send);
  };
  res.onWritable(send);
  res.cork(() => {
    res.writeHeader('content-type', 'video/mp4');
    send();
  });
}
