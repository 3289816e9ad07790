import { type Json, type JsonObject, listOf, objectOf } from '../json.js';
import { literal, python, typescript } from './quoting.js';
import {
  pythonCall,
  pythonKey,
  type Sample,
  type SampleSource,
  typescriptCall,
  typescriptKey,
} from './sample.js';

interface GenerateContentOptions {
  readonly model: string;
  readonly stream: boolean;
}

/** Text by generateContent. */
export function generateContentSample(source: SampleSource, options: GenerateContentOptions): Sample {
  const calls = callsOf(source, options);
  return program(source, options.stream ? streamed(calls) : whole(calls));
}

/** An image by generateContent, which is among the parts of the answer. */
export function generateContentImageSample(source: SampleSource, model: string): Sample {
  const { python, typescript } = callsOf(source, { model, stream: false });
  return program(source, {
    python: `response = ${python}
for part in response.candidates[0].content.parts:
    if part.inline_data:
        with open("image.png", "wb") as file:
            file.write(part.inline_data.data)`,
    typescriptImports: "import { writeFile } from 'node:fs/promises';\n",
    typescript: `const response = await ${typescript};
for (const { inlineData } of response.candidates?.[0]?.content?.parts ?? []) {
  if (inlineData?.data) await writeFile('image.png', Buffer.from(inlineData.data, 'base64'));
}`,
  });
}

/** The calls of the SDKs, which take everything except the contents as their config. */
function callsOf({ body, extra }: SampleSource, { model, stream }: GenerateContentOptions): Sample {
  const contents = body.contents ?? [];
  const instruction = listOf(objectOf(body.systemInstruction).parts).map((part) => objectOf(part).text);
  const [system] = instruction as Json[];
  const config: JsonObject = {
    ...(system === undefined ? {} : { systemInstruction: system }),
    ...(objectOf(body.generationConfig) as JsonObject),
  };
  const hasExtra = Object.keys(extra).length > 0;
  const pythonConfig = {
    ...(snakeNames(config) as JsonObject),
    ...(hasExtra ? { http_options: { extra_body: extra } } : {}),
  };
  const typescriptConfig = { ...config, ...(hasExtra ? { httpOptions: { extraBody: extra } } : {}) };
  return {
    python: pythonCall(`client.models.generate_content${stream ? '_stream' : ''}`, {
      model,
      contents,
      ...(Object.keys(pythonConfig).length === 0 ? {} : { config: pythonConfig }),
    }),
    typescript: typescriptCall(`client.models.generateContent${stream ? 'Stream' : ''}`, {
      model,
      contents,
      ...(Object.keys(typescriptConfig).length === 0 ? {} : { config: typescriptConfig }),
    }),
  };
}

/** Prepends the creation of the client. */
function program({ baseUrl }: SampleSource, parts: Sample & { readonly typescriptImports?: string }): Sample {
  return {
    python: `import os

from google import genai

client = genai.Client(
    api_key=${pythonKey},
    http_options={"base_url": ${literal(baseUrl, python)}},
)
${parts.python}
`,
    typescript: `${parts.typescriptImports ?? ''}import { GoogleGenAI } from '@google/genai';

const client = new GoogleGenAI({
  apiKey: ${typescriptKey},
  httpOptions: { baseUrl: ${literal(baseUrl, typescript)} },
});
${parts.typescript}
`,
  };
}

function streamed(calls: Sample): Sample {
  return {
    python: `for chunk in ${calls.python}:
    print(chunk.text or "", end="", flush=True)`,
    typescript: `const stream = await ${calls.typescript};
for await (const chunk of stream) process.stdout.write(chunk.text ?? '');`,
  };
}

function whole(calls: Sample): Sample {
  return {
    python: `response = ${calls.python}\nprint(response.text)`,
    typescript: `const response = await ${calls.typescript};\nconsole.log(response.text);`,
  };
}

/** The settings with names in snake case for Python. */
function snakeNames(value: Json): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const members = Object.entries(value).map(([name, each]) => [
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    snakeNames(each as Json),
  ]);
  return Object.fromEntries(members) as JsonObject;
}
