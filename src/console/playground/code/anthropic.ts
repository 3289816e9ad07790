import { type JsonObject, merged } from '../json.js';
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

/** Messages. The SDK's helpers for streams set `stream` themselves. */
export function messagesSample({ baseUrl, body, extra }: SampleSource): Sample {
  const { stream, ...rest } = body;
  const members: JsonObject = rest;
  const method = stream === true ? 'client.messages.stream' : 'client.messages.create';
  const pythonText = pythonCall(method, withExtraBody(members, extra));
  const typescriptText = typescriptCall(method, merged(members, extra));
  return {
    python: `import os

from anthropic import Anthropic

client = Anthropic(base_url=${literal(baseUrl, python)}, api_key=${pythonKey})
${
  stream === true
    ? `with ${pythonText} as stream:
    for text in stream.text_stream:
        print(text, end="", flush=True)`
    : `message = ${pythonText}
print("".join(block.text for block in message.content if block.type == "text"))`
}
`,
    typescript: `import Anthropic from '@anthropic-ai/sdk';

const client = new Anthropic({ baseURL: ${literal(baseUrl, typescript)}, apiKey: ${typescriptKey} });
${
  stream === true
    ? `const stream = ${typescriptText};
stream.on('text', (text) => process.stdout.write(text));
await stream.finalMessage();`
    : `const message = await ${typescriptText};
for (const block of message.content) {
  if (block.type === 'text') console.log(block.text);
}`
}
`,
  };
}
