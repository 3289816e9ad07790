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

export interface GenerateContentOptions {
  readonly model: string;
  readonly stream: boolean;
}

/** generateContent: the SDK takes everything but the contents as its config. */
export function generateContentSample(source: SampleSource, options: GenerateContentOptions): Sample {
  const { baseUrl, body, extra } = source;
  const { model, stream } = options;
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
  const pythonText = pythonCall(`client.models.generate_content${stream ? '_stream' : ''}`, {
    model,
    contents,
    ...(Object.keys(pythonConfig).length === 0 ? {} : { config: pythonConfig }),
  });
  const typescriptText = typescriptCall(`client.models.generateContent${stream ? 'Stream' : ''}`, {
    model,
    contents,
    ...(Object.keys(typescriptConfig).length === 0 ? {} : { config: typescriptConfig }),
  });
  const use = stream ? streamed(pythonText, typescriptText) : whole(pythonText, typescriptText);
  return {
    python: `import os

from google import genai

client = genai.Client(
    api_key=${pythonKey},
    http_options={"base_url": ${literal(baseUrl, python)}},
)
${use.python}
`,
    typescript: `import { GoogleGenAI } from '@google/genai';

const client = new GoogleGenAI({
  apiKey: ${typescriptKey},
  httpOptions: { baseUrl: ${literal(baseUrl, typescript)} },
});
${use.typescript}
`,
  };
}

function streamed(pythonText: string, typescriptText: string): Sample {
  return {
    python: `for chunk in ${pythonText}:
    print(chunk.text or "", end="", flush=True)`,
    typescript: `const stream = await ${typescriptText};
for await (const chunk of stream) process.stdout.write(chunk.text ?? '');`,
  };
}

function whole(pythonText: string, typescriptText: string): Sample {
  return {
    python: `response = ${pythonText}\nprint(response.text)`,
    typescript: `const response = await ${typescriptText};\nconsole.log(response.text);`,
  };
}

/** The names of the settings as Python writes them. */
function snakeNames(value: Json): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const members = Object.entries(value).map(([name, each]) => [
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    snakeNames(each as Json),
  ]);
  return Object.fromEntries(members) as JsonObject;
}
