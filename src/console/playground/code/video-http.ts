import type { GatewayRequest } from '../gateway-request.js';
import type { VideoFormat } from '../video-request.js';
import { taskId } from './curl.js';
import { type Language, literal, python, typescript } from './quoting.js';
import { pythonKey, type Sample, typescriptKey } from './sample.js';

/** The places of members in the answers of a format. */
interface Places {
  /** Paths to the task's id and to its state. */
  readonly id: readonly string[];
  readonly state: readonly string[];
  /** The words of a task that has not ended. */
  readonly open: readonly string[];
}

const places: Readonly<Record<Exclude<VideoFormat, 'compat'>, Places>> = {
  generic: { id: ['task_id'], state: ['status'], open: ['queued', 'in_progress'] },
  vendork: { id: ['data', 'task_id'], state: ['data', 'task_status'], open: ['submitted', 'processing'] },
  vendorj: { id: ['data', 'task_id'], state: ['data', 'status'], open: ['in_queue', 'generating'] },
};

interface VideoRequests {
  readonly create: GatewayRequest;
  /** The poll of the task `taskId`. */
  readonly poll: GatewayRequest;
  readonly content: GatewayRequest;
}

/** Creates, polls and saves a video in a format without an SDK. */
export function videoHttpSample(
  format: Exclude<VideoFormat, 'compat'>,
  baseUrl: string,
  requests: VideoRequests,
): Sample {
  const { id, state, open } = places[format];
  const at = (path: readonly string[]): string => path.map((name) => `["${name}"]`).join('');
  const dotted = (path: readonly string[]): string => path.map((name) => `.${name}`).join('');
  return {
    python: `import os
import time

import requests

base_url = ${literal(baseUrl, python)}
headers = {"authorization": f'Bearer {${pythonKey}}'}
task = requests.${pythonRequest(requests.create)}.json()
task_id = task${at(id)}
while True:
    time.sleep(1.5)
    task = requests.${pythonRequest(requests.poll, '    ')}.json()
    if task${at(state)} not in ${literal(open, python)}:
        break
video = requests.${pythonRequest(requests.content)}
video.raise_for_status()
with open("video.mp4", "wb") as file:
    file.write(video.content)
`,
    typescript: `import { writeFile } from 'node:fs/promises';

const baseUrl = ${literal(baseUrl, typescript)};
const headers = {
  authorization: \`Bearer \${${typescriptKey}}\`,
  'content-type': 'application/json',
};
let answer = await fetch(${typescriptRequest(requests.create)});
let task = await answer.json();
const id = task${dotted(id)};
do {
  await new Promise((resolve) => setTimeout(resolve, 1500));
  answer = await fetch(${typescriptRequest(requests.poll, '  ')});
  task = await answer.json();
} while (${literal(open, typescript)}.includes(task${dotted(state)}));
const video = await fetch(${typescriptRequest(requests.content)});
if (!video.ok) throw new Error(await video.text());
await writeFile('video.mp4', Buffer.from(await video.arrayBuffer()));
`,
  };
}

function pythonRequest({ method, path, body }: GatewayRequest, indent = ''): string {
  const inner = `${indent}    `;
  const address = `base_url + ${withTask(literal(path, python), '" + task_id + "').replace(/ \+ ""$/, '')}`;
  if (body === null) return `${method.toLowerCase()}(${address}, headers=headers)`;
  return `${method.toLowerCase()}(
${inner}${address},
${inner}headers=headers,
${inner}json=${bodyText(body, python, inner, 'task_id')},
${indent})`;
}

function typescriptRequest({ method, path, body }: GatewayRequest, indent = ''): string {
  const address = `\`\${baseUrl}${withTask(path, `\${id}`)}\``;
  if (body === null) return `${address}, { headers }`;
  const inner = `${indent}  `;
  return `${address}, {
${inner}method: '${method}',
${inner}headers,
${inner}body: JSON.stringify(${bodyText(body, typescript, inner, 'id')}),
${indent}}`;
}

/** The body, with a variable in place of the task's id. */
function bodyText(
  body: NonNullable<GatewayRequest['body']>,
  language: Language,
  indent: string,
  variable: string,
): string {
  const text = literal(body, language, indent);
  return body.task_id === taskId ? text.replace(language.text(taskId), variable) : text;
}

function withTask(text: string, variable: string): string {
  return text.replaceAll(taskId, variable);
}
