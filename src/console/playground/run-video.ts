import { begin, logBlob, type PlaygroundCall, readText } from './call.js';
import { type Choice, requestOf } from './choice.js';
import { parseJson } from './json.js';
import { readBlob, relay } from './relay.js';
import { readVideoState, type VideoState, videoContent, videoPoll } from './video-request.js';

const pollMs = 1500;
/** Most failed polls in a row, since a gateway that reloads or is busy recovers. */
const maxFailures = 5;
const maxVideoBytes = 512 * 1024 * 1024;

const words: Readonly<Record<VideoState['state'], string>> = {
  queued: 'Queued',
  in_progress: 'In progress',
  completed: 'Finished: fetching the video',
  failed: 'Failed',
};

/** Creates a video, polls it, and plays it. */
export async function runVideo(
  call: PlaygroundCall,
  choice: Extract<Choice, { kind: 'video' }>,
  prompt: string,
): Promise<void> {
  const request = requestOf(choice, prompt, []);
  const text = await readText(call, await begin(call, request), `POST ${request.path}`);
  if (text === null) return;
  let task = readVideoState(choice.protocol, parseJson(text));
  const { id } = task;
  if (id === '') {
    call.exchange.showProblem('The answer names no task.');
    return;
  }
  for (let failures = 0; task.state === 'queued' || task.state === 'in_progress'; ) {
    show(call, task);
    await pause(pollMs, call.signal);
    const poll = videoPoll(choice.protocol, choice.settings.model, id);
    const answer = await relay(poll, call.key, call.signal);
    const said = await readText(call, answer, `${poll.method} ${poll.path}`);
    if (said !== null) {
      failures = 0;
      task = readVideoState(choice.protocol, parseJson(said));
    } else if (answer.status < 500 && answer.status !== 429) {
      return;
    } else if (++failures === maxFailures) return;
  }
  show(call, task);
  if (task.state === 'failed') call.exchange.showProblem(task.error ?? 'The task has failed.');
  else await play(call, id);
}

async function play(call: PlaygroundCall, id: string): Promise<void> {
  const request = videoContent(id);
  const answer = await relay(request, call.key, call.signal);
  if (answer.status >= 400) {
    await readText(call, answer, `GET ${request.path}`);
    return;
  }
  const blob = await readBlob(answer.body, maxVideoBytes);
  logBlob(call, `GET ${request.path}`, blob);
  call.exchange.showMade({ kind: 'video', url: call.urls.make(blob), file: 'video.mp4' });
}

function show({ exchange }: PlaygroundCall, { id, state, progress }: VideoState): void {
  const percent = state === 'completed' ? 100 : state === 'queued' ? 0 : progress;
  const said = state === 'in_progress' && percent !== null ? `${words[state]}: ${percent}%` : words[state];
  exchange.showProgress(id === '' ? said : `${said} · ${id}`, percent);
}

/** Waits. If the signal is aborted, rejects immediately with its reason. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal.addEventListener('abort', stop, { once: true });
  });
}
