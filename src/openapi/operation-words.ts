import type { VendorWords } from '../config/types.js';
import { pathSpellings, type Route } from '../routes.js';
import { freeName } from './schemas.js';

/** The description of an operation. */
export interface OperationWords {
  /** In camel case, unique and stable: generated clients derive the names of their methods from it. */
  readonly id: string;
  readonly summary: string;
  /** Describes the successful answer. */
  readonly answer: string;
  /** What neither the summary nor a schema states, or null. */
  readonly more: string | null;
}

type Line = readonly [route: string, id: string, summary: string, answer: string, more?: string];

const manySpellings = 'Each member may be written in camel case or in snake case.';
const pathModel = 'The model is named in the path.';
const eitherForm =
  'A body has either `prompt` with its settings beside it, or `input` with `messages`, never both.';
const embedded =
  'The model is one that is offered for embeddings. For a model whose upstream has `/embeddings`, each content is one text, and `taskType` and `title` are left out.';
const counted = 'Where the model is of another protocol, the number is an estimate.';
const unslashed = 'For clients that leave out the slash behind the path.';
const vendorkNames =
  'The model is named by `model` or `model_name`; where both are there they must be the same.';
const textOrImage = 'A video is made from a `prompt`, or from an `image` with or without one.';

const lines: readonly Line[] = [
  [
    'POST /v1/chat/completions',
    'createChatCompletion',
    'Create a chat completion',
    'The completion, or its chunks where `stream` is true.',
  ],
  [
    'POST /v1/responses',
    'createResponse',
    'Create a response',
    'The response, or its events where `stream` is true.',
    'A body needs `input`, or one of `previous_response_id`, `conversation` and `prompt` to stand in for it.',
  ],
  ['POST /v1/responses/compact', 'compactResponse', 'Compact a conversation', 'The compacted conversation.'],
  [
    'POST /v1/responses/input_tokens',
    'countResponseInputTokens',
    'Count the input tokens of a response',
    'How many tokens the input would cost.',
  ],
  [
    'GET /v1/responses/{response_id}',
    'getResponse',
    'Show a response',
    'The response.',
    'Kept here, or at the upstream that made it; for the key alone whose it is.',
  ],
  ['DELETE /v1/responses/{response_id}', 'deleteResponse', 'Delete a response', 'That it is deleted.'],
  [
    'GET /v1/responses/{response_id}/input_items',
    'listResponseInputItems',
    'List what a response was made from',
    'A page of the items of its input, those of the turns before it included.',
  ],
  [
    'POST /v1/responses/{response_id}/cancel',
    'cancelResponse',
    'Cancel a response that is made in the background',
    'The response.',
    'Those that are kept here are not made in the background: 400.',
  ],
  [
    'GET /v1/responses',
    'openResponsesSocket',
    'Create responses over a WebSocket',
    '',
    'Each message of the client is one call, as a `response.create` event; the events of its stream come back as messages.',
  ],
  [
    'POST /v1/messages',
    'createMessage',
    'Create a message',
    'The message, or its events where `stream` is true.',
  ],
  [
    'POST /v1/messages/count_tokens',
    'countMessageTokens',
    'Count the input tokens of a message',
    'The number of tokens.',
    counted,
  ],
  ...(
    [
      ['/v1beta/models', ''],
      ['/v1/models', 'V1'],
    ] as const
  ).flatMap(([models, version]): Line[] => [
    [
      `POST ${models}/{model}:generateContent`,
      `generateContent${version}`,
      'Generate content',
      'The generated content.',
      `${pathModel} ${manySpellings}`,
    ],
    [
      `POST ${models}/{model}:streamGenerateContent`,
      `streamGenerateContent${version}`,
      'Generate content as a stream',
      'The chunks: as events where `alt` is `sse`, else as the elements of one JSON array.',
      `${pathModel} ${manySpellings}`,
    ],
    [
      `POST ${models}/{model}:countTokens`,
      `countContentTokens${version}`,
      'Count the tokens of content',
      'The number of tokens.',
      `${pathModel} ${counted}`,
    ],
    [
      `POST ${models}/{model}:embedContent`,
      `embedContent${version}`,
      'Create the embedding of content',
      'The embedding.',
      `${pathModel} ${embedded}`,
    ],
    [
      `POST ${models}/{model}:batchEmbedContents`,
      `batchEmbedContents${version}`,
      'Create the embeddings of several contents',
      'The embeddings, in the order of the contents.',
      `${pathModel} ${embedded}`,
    ],
  ]),
  [
    'POST /v1/completions',
    'createCompletion',
    'Complete a text',
    'The completion, or its chunks where `stream` is true.',
  ],
  ['POST /v1/embeddings', 'createEmbeddings', 'Create embeddings', 'The embeddings.'],
  [
    'POST /v1/engines/{model}/embeddings',
    'createEngineEmbeddings',
    'Create embeddings with the model of the path',
    'The embeddings.',
  ],
  [
    'POST /v1/embed',
    'createEmbed',
    "Create embeddings as Cohere's older clients ask for them",
    'The embeddings.',
  ],
  [
    'POST /v2/embed',
    'createEmbedV2',
    "Create embeddings as Cohere's clients ask for them",
    'The embeddings.',
  ],
  [
    'POST /v1/rerank',
    'rerankDocuments',
    'Order documents by their relevance to a query',
    'The documents in order.',
    'Without a `model`, or with null, the one of `defaultModels.rerank` in the config decides; where that is not set, the answer is 400.',
  ],
  [
    'POST /v2/rerank',
    'rerankDocumentsV2',
    'The same under the path of newer clients',
    'The documents in order.',
  ],
  ['POST /v1/moderations', 'createModeration', 'Classify texts and images', 'The verdicts.'],
  [
    'POST /v1/audio/transcriptions',
    'createTranscription',
    'Transcribe speech',
    'The transcript in the format that was asked for, or its events where `stream` is true.',
  ],
  [
    'POST /v1/audio/translations',
    'createTranslation',
    'Translate speech to English',
    'The English text in the format that was asked for.',
  ],
  [
    'POST /v1/audio/speech',
    'createSpeech',
    'Speak a text',
    'The audio in the format that was asked for, or its events where `stream_format` is `sse`.',
  ],
  ['POST /v1/images/generations', 'createImage', 'Create images', 'The images.', eitherForm],
  ['POST /v1/images/edits', 'editImage', 'Edit images', 'The images.', eitherForm],
  ['POST /v1/videos', 'createVideo', 'Create a video', 'The task, which is queued.'],
  ['GET /v1/videos/{task_id}', 'getVideo', 'Show a video task', 'The task.'],
  [
    'GET /v1/videos/{task_id}/content',
    'getVideoContent',
    'Download a finished video',
    'The file.',
    'Serves the tasks of every video format.',
  ],
  [
    'HEAD /v1/videos/{task_id}/content',
    'headVideoContent',
    'Ask for the headers of a finished video',
    'The headers of the file.',
  ],
  [
    'POST /vendork/v1/videos/text2video',
    'createVendorkTextVideo',
    'Create a video from a text',
    'The task.',
    vendorkNames,
  ],
  ['GET /vendork/v1/videos/text2video/{task_id}', 'getVendorkTextVideo', 'Show a video task', 'The task.'],
  [
    'POST /vendork/v1/videos/image2video',
    'createVendorkImageVideo',
    'Create a video from an image',
    'The task.',
    vendorkNames,
  ],
  ['GET /vendork/v1/videos/image2video/{task_id}', 'getVendorkImageVideo', 'Show a video task', 'The task.'],
  ['POST /v1/video/generations', 'createGenericVideo', 'Create a video', 'The task.', textOrImage],
  ['GET /v1/video/generations/{task_id}', 'getGenericVideo', 'Show a video task', 'The task.'],
  ['POST /vendorj/', 'callVendorj', 'Create or show a video task, as the query says', 'The task.'],
  [
    'POST /vendorj',
    'callVendorjUnslashed',
    'Create or show a video task, as the query says',
    'The task.',
    unslashed,
  ],
  [
    'GET /v1/models',
    'listModels',
    'List the models of a key',
    'The models.',
    'The headers choose the format: `x-api-key` with a version the messages list, the vendorg header or the query ' +
      '`key` the generateContent list, else the chat list.',
  ],
  ['GET /v1/models/{model}', 'getModel', 'Show a model', 'The model.', 'In the format of the list.'],
  ['GET /v1beta/models', 'listContentModels', 'List the models of a key', 'The models.'],
  ['GET /v1beta/models/{model}', 'getContentModel', 'Show a model', 'The model.'],
  [
    'GET /v1/realtime',
    'openRealtimeSession',
    'Open a realtime session',
    '',
    'The events of the session are passed on as they come, both ways.',
  ],
  ['GET /v1/fine-tunes', 'listFineTunes', 'List fine-tunes (not implemented)', ''],
  ['POST /v1/fine-tunes', 'createFineTune', 'Create a fine-tune (not implemented)', ''],
  ['GET /v1/fine-tunes/{fine_tune_id}', 'getFineTune', 'Show a fine-tune (not implemented)', ''],
  ['POST /v1/fine-tunes/{fine_tune_id}/cancel', 'cancelFineTune', 'Cancel a fine-tune (not implemented)', ''],
  [
    'GET /v1/fine-tunes/{fine_tune_id}/events',
    'listFineTuneEvents',
    'List the events of a fine-tune (not implemented)',
    '',
  ],
  ['GET /v1/files', 'listFiles', 'List files (not implemented)', ''],
  ['POST /v1/files', 'uploadFile', 'Upload a file (not implemented)', ''],
  ['GET /v1/files/{file_id}', 'getFile', 'Show a file (not implemented)', ''],
  ['DELETE /v1/files/{file_id}', 'deleteFile', 'Delete a file (not implemented)', ''],
  ['GET /v1/files/{file_id}/content', 'getFileContent', 'Download a file (not implemented)', ''],
];

/**
 * Returns the descriptions of routes. A path with a vendor's own word has that of the neutral path, with the word in
 * its id.
 * @returns a function that throws an Error for a route that is not in the table
 */
export function createOperationWords(words: VendorWords): (route: Route) => OperationWords {
  const byRoute = new Map<string, OperationWords>();
  const ids = new Set(lines.map(([, id]) => id));
  for (const [route, id, summary, answer, more = null] of lines) {
    const [method = '', path = ''] = route.split(' ');
    const [, ...vendorPaths] = pathSpellings(path, words);
    byRoute.set(route, { id, summary, answer, more });
    for (const vendorPath of vendorPaths) {
      const vendorId = freeName(`${id}${inId(vendorPath.split('/')[1] ?? '')}`, ids);
      ids.add(vendorId);
      byRoute.set(`${method} ${vendorPath}`, { id: vendorId, summary, answer, more });
    }
  }
  return ({ method, path }) => {
    const found = byRoute.get(`${method} ${path.replace('...}', '}')}`);
    if (found === undefined) throw new Error(`The route ${method} ${path} is not described for OpenAPI.`);
    return found;
  };
}

/** `my-word` -> `MyWord` */
function inId(word: string): string {
  return word
    .split('-')
    .map((part) => part.slice(0, 1).toUpperCase() + part.slice(1))
    .join('');
}
