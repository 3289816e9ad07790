import { merged } from '../json.js';
import { literal, python, typescript } from './quoting.js';
import {
  pythonCall,
  pythonKey,
  type Sample,
  type SampleSource,
  typescriptCall,
  typescriptKey,
  withExtraBody,
} from './sample.js';

/** Chat completions. */
export function chatSample(source: SampleSource): Sample {
  const whole = merged(source.body, source.extra);
  const create = 'client.chat.completions.create';
  const call = pythonCall(create, withExtraBody(source.body, source.extra));
  const typescript = `await ${typescriptCall(create, whole)}`;
  return source.body.stream === true
    ? sample(source, {
        python: `stream = ${call}
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)`,
        typescript: `const stream = ${typescript};
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta.content ?? '');
}`,
      })
    : sample(source, {
        python: `completion = ${call}\nprint(completion.choices[0].message.content)`,
        typescript: `const completion = ${typescript};\nconsole.log(completion.choices[0]?.message.content);`,
      });
}

export function responsesSample(source: SampleSource): Sample {
  const whole = merged(source.body, source.extra);
  const call = pythonCall('client.responses.create', withExtraBody(source.body, source.extra));
  const typescript = `await ${typescriptCall('client.responses.create', whole)}`;
  return source.body.stream === true
    ? sample(source, {
        python: `stream = ${call}
for event in stream:
    if event.type == "response.output_text.delta":
        print(event.delta, end="", flush=True)`,
        typescript: `const stream = ${typescript};
for await (const event of stream) {
  if (event.type === 'response.output_text.delta') process.stdout.write(event.delta);
}`,
      })
    : sample(source, {
        python: `response = ${call}\nprint(response.output_text)`,
        typescript: `const response = ${typescript};\nconsole.log(response.output_text);`,
      });
}

/** An image from a prompt. */
export function imageSample(source: SampleSource): Sample {
  const isUrl = source.body.response_format === 'url';
  const call = pythonCall('client.images.generate', source.body);
  const typescript = `const images = await ${typescriptCall('client.images.generate', source.body)};`;
  return isUrl
    ? sample(source, {
        python: `images = ${call}\nprint(images.data[0].url)`,
        typescript: `${typescript}\nconsole.log(images.data?.[0]?.url);`,
      })
    : sample(source, {
        pythonImports: 'import base64\n',
        python: `images = ${call}
with open("image.png", "wb") as file:
    file.write(base64.b64decode(images.data[0].b64_json))`,
        typescriptImports: "import { writeFile } from 'node:fs/promises';\n",
        typescript: `${typescript}
await writeFile('image.png', Buffer.from(images.data?.[0]?.b64_json ?? '', 'base64'));`,
      });
}

/** An image from a body that the SDK has no parameters for. */
export function imageInputSample(source: SampleSource): Sample {
  return sample(source, {
    pythonImports: 'import httpx\n',
    python: `answer = client.post(
    "/images/generations",
    cast_to=httpx.Response,
    body=${literal(source.body, python, '    ')},
)
print(answer.json()["data"][0])`,
    typescript: `const answer = await client.post('/images/generations', {
  body: ${literal(source.body, typescript, '  ')},
});
console.log(answer.data[0]);`,
  });
}

/** @param file name of the output file */
export function speechSample(source: SampleSource, file: string): Sample {
  const path = literal(file, typescript);
  return sample(source, {
    python: `${pythonCall('with client.audio.speech.with_streaming_response.create', source.body)} as speech:
    speech.stream_to_file(${literal(file, python)})`,
    typescriptImports: "import { writeFile } from 'node:fs/promises';\n",
    typescript: `const speech = await ${typescriptCall('client.audio.speech.create', source.body)};
await writeFile(${path}, Buffer.from(await speech.arrayBuffer()));`,
  });
}

/** Creates, polls and saves a video. */
export function videoSample(source: SampleSource): Sample {
  return sample(source, {
    pythonImports: 'import time\n',
    python: `video = ${pythonCall('client.videos.create', source.body)}
while video.status in ("queued", "in_progress"):
    time.sleep(1.5)
    video = client.videos.retrieve(video.id)
if video.status == "failed":
    raise SystemExit(video.error)
client.videos.download_content(video.id).write_to_file("video.mp4")`,
    typescriptImports: "import { writeFile } from 'node:fs/promises';\n",
    typescript: `let video = await ${typescriptCall('client.videos.create', source.body)};
while (video.status === 'queued' || video.status === 'in_progress') {
  await new Promise((resolve) => setTimeout(resolve, 1500));
  video = await client.videos.retrieve(video.id);
}
if (video.status === 'failed') throw new Error(video.error?.message);
const content = await client.videos.downloadContent(video.id);
await writeFile('video.mp4', Buffer.from(await content.arrayBuffer()));`,
  });
}

interface Parts extends Sample {
  readonly pythonImports?: string;
  readonly typescriptImports?: string;
}

/** Prepends the creation of the client. */
function sample({ baseUrl }: SampleSource, parts: Parts): Sample {
  const base = `${baseUrl}/v1`;
  const { pythonImports = '', typescriptImports = '' } = parts;
  return {
    python: `import os
${pythonImports}
from openai import OpenAI

client = OpenAI(base_url=${literal(base, python)}, api_key=${pythonKey})
${parts.python}
`,
    typescript: `${typescriptImports}import OpenAI from 'openai';

const client = new OpenAI({ baseURL: ${literal(base, typescript)}, apiKey: ${typescriptKey} });
${parts.typescript}
`,
  };
}
