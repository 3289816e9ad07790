import { addWhole } from './answer-readers.js';
import { blobOfBase64 } from './blob-urls.js';
import { begin, logBlob, type PlaygroundCall, readText } from './call.js';
import { type Choice, requestOf } from './choice.js';
import type { Made } from './exchange.js';
import { get } from './gateway-request.js';
import { objectOf, parseJson } from './json.js';
import { type AnswerImage, readImages } from './media-request.js';
import { readBlob, relay } from './relay.js';
import { openAiTokens, type TextAnswer } from './text-answer.js';

const maxMediaBytes = 128 * 1024 * 1024;

/**
 * Generates and shows images.
 * @param answer filled with the text beside them
 */
export async function runImage(
  call: PlaygroundCall,
  choice: Extract<Choice, { kind: 'image' }>,
  prompt: string,
  answer: TextAnswer,
): Promise<void> {
  const text = await readText(call, await begin(call, requestOf(choice, prompt, [])), '');
  if (text === null) return;
  const body = parseJson(text);
  const { usage } = objectOf(body);
  if (choice.protocol === 'generateContent') {
    addWhole(choice.protocol, answer, text);
    call.record.tokens = answer.tokens;
    call.record.finish = answer.finish;
  } else if (usage !== undefined)
    call.record.tokens = openAiTokens(usage, { input: 'input', output: 'output' });
  const images = readImages(body);
  if (images.length === 0) call.exchange.showProblem('There is no image in the answer.');
  for (const [index, image] of images.entries()) {
    call.exchange.showMade(await madeOf(call, image, prompt, `image-${index + 1}`));
  }
}

async function madeOf(call: PlaygroundCall, image: AnswerImage, prompt: string, name: string): Promise<Made> {
  const blob = await blobOf(call, image);
  if (blob !== null) {
    return { kind: 'image', url: call.urls.make(blob), file: `${name}.${endingOf(blob.type)}`, prompt };
  }
  if (image.kind === 'bytes') return { kind: 'broken', problem: 'The image is no base64.' };
  const isOwn = image.url.startsWith('data:image/');
  return isOwn
    ? { kind: 'image', url: image.url, file: name, prompt }
    : { kind: 'elsewhere', url: image.url };
}

/** @returns null for an image at another host */
async function blobOf(call: PlaygroundCall, image: AnswerImage): Promise<Blob | null> {
  if (image.kind === 'bytes') return blobOfBase64(image.base64, image.type);
  const { baseUrl, key, signal } = call;
  if (baseUrl === '' || !image.url.startsWith(`${baseUrl}/`)) return null;
  const answer = await relay(get(image.url.slice(baseUrl.length)), key, signal);
  return answer.status === 200 ? readBlob(answer.body, maxMediaBytes) : null;
}

/** Generates speech, and plays it. */
export async function runSpeech(
  call: PlaygroundCall,
  choice: Extract<Choice, { kind: 'speech' }>,
  prompt: string,
): Promise<void> {
  const answer = await begin(call, requestOf(choice, prompt, []));
  if (answer.status >= 400) {
    await readText(call, answer, '');
    return;
  }
  const blob = await readBlob(answer.body, maxMediaBytes);
  logBlob(call, '', blob);
  const { format } = choice.settings;
  const url = call.urls.make(blob);
  const file = `speech.${format}`;
  call.exchange.showMade({ kind: format === 'pcm' ? 'file' : 'audio', url, file });
}

function endingOf(type: string): string {
  return /^image\/(\w+)/.exec(type)?.[1] ?? 'png';
}
