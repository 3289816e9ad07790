import { type Shape, shapeOf } from '../unsupported.js';
import { snakeCase } from './spelling.js';

/** Adds the second name of each member. */
function spelled(shape: Shape): Shape {
  const spelledOut = new Map(shape);
  for (const [name, read] of shape) {
    const inner = typeof read === 'object' ? spelled(read) : read;
    spelledOut.set(name, inner).set(snakeCase(name), inner);
  }
  return spelledOut;
}

/** Any other member of a tool is a tool that the vendor runs. */
const toolMembers = spelled(
  shapeOf({
    googleSearch: shapeOf('excludeDomains'),
    googleSearchRetrieval: shapeOf(),
    functionDeclarations: shapeOf('name', 'description', 'parameters', 'parametersJsonSchema'),
  }),
);

/** What `decode.ts` reads of a body; see `unreadMembers`. */
export const readMembers = spelled(
  shapeOf('model', 'cachedContent', 'systemInstruction', {
    contents: shapeOf('role', {
      parts: shapeOf(...['text', 'inlineData', 'fileData', 'thought', 'thoughtSignature'], {
        functionCall: shapeOf('id', 'name', 'args'),
        functionResponse: shapeOf('id', 'name', 'response', 'parts'),
      }),
    }),
    tools: (tool) => new Map([...Object.keys(tool).map((name) => [name, true] as const), ...toolMembers]),
    toolConfig: shapeOf({ functionCallingConfig: shapeOf('mode', 'allowedFunctionNames') }),
    generationConfig: shapeOf(
      ...['temperature', 'topP', 'topK', 'stopSequences', 'maxOutputTokens', 'candidateCount', 'seed'],
      ...['presencePenalty', 'frequencyPenalty', 'responseLogprobs', 'logprobs', 'thinkingConfig'],
      ...['responseMimeType', 'responseJsonSchema', '_responseJsonSchema', 'responseSchema'],
      ...['responseModalities', 'imageConfig', 'speechConfig'],
      { responseFormat: shapeOf('image', 'audio', 'video', { text: shapeOf('mimeType', 'schema') }) },
    ),
  }),
);

/** What `images.ts` reads of a body that requests images. */
export const readForImages = spelled(
  shapeOf('model', 'systemInstruction', {
    contents: shapeOf('role', {
      parts: shapeOf('text', 'inlineData', 'fileData', 'thought', 'thoughtSignature'),
    }),
    generationConfig: shapeOf('responseModalities', 'candidateCount', {
      imageConfig: shapeOf('aspectRatio', 'imageSize'),
      responseFormat: shapeOf({ image: shapeOf('aspectRatio', 'imageSize') }),
    }),
  }),
);
