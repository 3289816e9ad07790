import { type Choice, requestOf } from '../choice.js';
import type { Turn } from '../conversation.js';
import type { GatewayRequest } from '../gateway-request.js';
import type { JsonObject } from '../json.js';
import { videoContent, videoPoll } from '../video-request.js';
import { messagesSample } from './anthropic.js';
import { type Credential, curl, taskId } from './curl.js';
import { generateContentImageSample, generateContentSample } from './genai.js';
import {
  chatSample,
  imageInputSample,
  imageSample,
  responsesSample,
  speechSample,
  videoSample,
} from './openai.js';
import type { Sample, SampleSource } from './sample.js';
import { videoHttpSample } from './video-http.js';

/** The same request in shell and in two languages. */
export interface Samples extends Sample {
  readonly curl: string;
}

/** The request of a sample. */
export interface Asked {
  readonly choice: Choice;
  readonly prompt: string;
  readonly turns: readonly Turn[];
}

/**
 * Writes code for the request of the playground. It never contains the key, which is read from `GATEWAY_KEY`.
 * @param baseUrl scheme and authority of the gateway
 */
export function codeSamples({ choice, prompt, turns }: Asked, baseUrl: string): Samples {
  const request = requestOf(choice, prompt, turns);
  return { curl: curlText(choice, request, baseUrl), ...sdkSample(choice, prompt, turns, baseUrl) };
}

function curlText(choice: Choice, request: GatewayRequest, baseUrl: string): string {
  if (choice.kind === 'speech') {
    return `${curl(baseUrl, request, { credential: 'bearer', output: speechFile(choice.settings.format) })}\n`;
  }
  if (choice.kind === 'video') {
    const ofTask = { credential: 'bearer', ofTask: true } as const;
    const poll = curl(baseUrl, videoPoll(choice.protocol, choice.settings.model, taskId), ofTask);
    const content = curl(baseUrl, videoContent(taskId), { ...ofTask, output: 'video.mp4' });
    return `${curl(baseUrl, request, { credential: 'bearer' })}

# how it stands; ID is in the answer above
${poll}

# the video, once it is finished
${content}
`;
  }
  const stream = choice.kind === 'chat' && choice.settings.stream;
  return `${curl(baseUrl, request, { credential: credentials[choice.protocol], stream })}\n`;
}

/** Where the vendors' clients put the key. */
const credentials: Readonly<Record<Choice['protocol'], Credential>> = {
  chat: 'bearer',
  responses: 'bearer',
  messages: 'x-api-key',
  generateContent: 'x-goog-api-key',
  images: 'bearer',
  imagesInput: 'bearer',
  speech: 'bearer',
  compat: 'bearer',
  generic: 'bearer',
  vendork: 'bearer',
  vendorj: 'bearer',
};

function speechFile(format: string): string {
  return `speech.${format}`;
}

function sdkSample(choice: Choice, prompt: string, turns: readonly Turn[], baseUrl: string): Sample {
  const { source, extra } = apart(choice);
  const request = requestOf(source, prompt, turns);
  const from: SampleSource = { baseUrl, body: request.body ?? {}, extra };
  const { model } = choice.settings;
  switch (choice.kind) {
    case 'chat':
      switch (choice.protocol) {
        case 'chat':
          return chatSample(from);
        case 'responses':
          return responsesSample(from);
        case 'messages':
          return messagesSample(from);
        case 'generateContent':
          return generateContentSample(from, { model, stream: choice.settings.stream });
      }
      break;
    case 'image':
      switch (choice.protocol) {
        case 'images':
          return imageSample(from);
        case 'imagesInput':
          return imageInputSample(from);
        case 'generateContent':
          return generateContentImageSample(from, model);
      }
      break;
    case 'speech':
      return speechSample(from, speechFile(choice.settings.format));
    case 'video': {
      if (choice.protocol === 'compat') return videoSample(from);
      const poll = videoPoll(choice.protocol, model, taskId);
      return videoHttpSample(choice.protocol, baseUrl, {
        create: request,
        poll,
        content: videoContent(taskId),
      });
    }
  }
}

/** Separates the members that the SDKs have parameters for from those merged over the body. */
function apart(choice: Choice): { source: Choice; extra: JsonObject } {
  if (choice.kind !== 'chat') return { source: choice, extra: {} };
  const { extra } = choice.settings;
  return { source: { ...choice, settings: { ...choice.settings, extra: {} } }, extra };
}
