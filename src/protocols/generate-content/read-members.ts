import { type Shape, wholes } from '../unread.js';
import { snakeCase } from './spelling.js';

/** Of the members with both of their names. */
function spelled(shape: Shape): Shape {
  return Object.fromEntries(
    Object.entries(shape).flatMap(([name, read]) => {
      const inner = typeof read === 'object' ? spelled(read) : read;
      return [
        [name, inner],
        [snakeCase(name), inner],
      ];
    }),
  );
}

const searches = spelled({ googleSearch: wholes('excludeDomains') });
const declarations = spelled({
  functionDeclarations: wholes('name', 'description', 'parameters', 'parametersJsonSchema'),
});

/** What `decode.ts` reads of a body; see `unreadMembers`. */
export const readMembers: Shape = spelled({
  ...wholes('model', 'cachedContent', 'systemInstruction'),
  contents: {
    role: true,
    parts: {
      ...wholes('text', 'inlineData', 'fileData', 'thought', 'thoughtSignature', 'functionResponse'),
      functionCall: wholes('id', 'name', 'args'),
    },
  },
  // What else stands there is a tool that the vendor runs.
  tools: (tool) => ({ ...wholes(...Object.keys(tool)), ...declarations, ...searches }),
  toolConfig: { functionCallingConfig: wholes('mode', 'allowedFunctionNames') },
  generationConfig: wholes(
    ...['temperature', 'topP', 'topK', 'stopSequences', 'maxOutputTokens', 'candidateCount', 'seed'],
    ...['presencePenalty', 'frequencyPenalty', 'responseLogprobs', 'logprobs', 'thinkingConfig'],
    ...['responseMimeType', 'responseJsonSchema', '_responseJsonSchema', 'responseSchema'],
    ...['responseModalities', 'imageConfig', 'speechConfig'],
  ),
});

/** The same of what `images.ts` reads of a body that asks for images. */
export const readForImages: Shape = spelled({
  ...wholes('model', 'systemInstruction'),
  contents: {
    role: true,
    parts: wholes('text', 'inlineData', 'fileData', 'thought', 'thoughtSignature'),
  },
  generationConfig: {
    ...wholes('responseModalities', 'candidateCount'),
    imageConfig: wholes('aspectRatio', 'imageSize'),
  },
});
