import { type TSchema, Type } from 'typebox';
import type { ModelListFormat } from '../protocols/credentials/credentials.js';
import type { VideoFormat } from '../video/task.js';
import { type NamedSchema, named } from './schemas.js';

/*
 * Answers of the gateway itself. Upstreams' answers are not described: they follow their protocol, whatever its newest
 * version adds.
 */

const optional = (schema: TSchema) => Type.Optional(schema);
const orNull = (schema: TSchema) => Type.Union([schema, Type.Null()]);
const text = Type.String();
const time = (description: string) => Type.Integer({ description });

const chatModel = Type.Object({
  id: text,
  object: Type.Literal('model'),
  created: time('Unix seconds.'),
  owned_by: text,
  type: optional(Type.Literal('model')),
  display_name: optional(text),
  created_at: optional(text),
});

const chatModelList = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(chatModel),
  has_more: optional(Type.Boolean()),
  first_id: optional(orNull(text)),
  last_id: optional(orNull(text)),
});

const messagesModel = Type.Object({
  type: Type.Literal('model'),
  id: text,
  display_name: text,
  created_at: Type.String({ format: 'date-time' }),
  capabilities: Type.Null(),
  max_input_tokens: orNull(Type.Integer({ minimum: 1 })),
  max_tokens: orNull(Type.Integer({ minimum: 1 })),
  lifecycle: text,
  line: Type.Null(),
  deprecated_at: Type.Null(),
  retires_at: Type.Null(),
});

const messagesModelList = Type.Object({
  data: Type.Array(messagesModel),
  has_more: Type.Boolean(),
  first_id: orNull(text),
  last_id: orNull(text),
});

const generateContentModel = Type.Object({
  name: Type.String({ description: 'The name of the model behind `models/`.' }),
  version: text,
  displayName: text,
  description: text,
  inputTokenLimit: orNull(Type.Integer({ minimum: 1 })),
  outputTokenLimit: orNull(Type.Integer({ minimum: 1 })),
  supportedGenerationMethods: Type.Array(text),
});

const generateContentModelList = Type.Object({
  models: Type.Array(generateContentModel),
  nextPageToken: optional(text),
});

const taskError = (code: TSchema) => Type.Object({ code, message: text });
const requestId = text;

const compatTask = Type.Object({
  id: text,
  object: Type.Literal('video'),
  model: text,
  status: Type.Enum(['queued', 'in_progress', 'completed', 'failed']),
  progress: Type.Integer({ minimum: 0, maximum: 100, description: 'Percent.' }),
  created_at: time('Unix seconds.'),
  seconds: text,
  completed_at: optional(orNull(time('Unix seconds; only when the task is made.'))),
  expires_at: optional(time('Unix seconds; only when the task is made.')),
  size: optional(text),
  error: optional(orNull(taskError(text))),
  metadata: optional(Type.Object({})),
});

const genericMembers = {
  task_id: text,
  status: Type.Enum(['queued', 'in_progress', 'completed', 'failed']),
  url: optional(Type.String({ description: 'Of the video, once the task is completed.' })),
  format: optional(text),
  metadata: optional(
    Type.Object({
      duration: optional(Type.Number()),
      fps: optional(Type.Number()),
      width: optional(Type.Number()),
      height: optional(Type.Number()),
      seed: optional(Type.Number()),
    }),
  ),
  error: optional(taskError(Type.Integer())),
};

const vendorkTask = Type.Object({
  code: Type.Literal(0),
  message: text,
  request_id: requestId,
  data: Type.Object({
    task_id: text,
    task_status: Type.Enum(['submitted', 'processing', 'succeed', 'failed']),
    task_status_msg: optional(text),
    task_info: Type.Object({ external_task_id: optional(text) }),
    created_at: time('Unix milliseconds.'),
    updated_at: time('Unix milliseconds.'),
    task_result: optional(
      Type.Object({ videos: Type.Array(Type.Object({ id: text, url: text, duration: text })) }),
    ),
  }),
  ...genericMembers,
});

const vendorjTask = Type.Object({
  code: Type.Integer({ description: '10000, or the number of what went wrong with the task.' }),
  message: text,
  data: Type.Object({
    task_id: optional(text),
    status: optional(Type.Enum(['in_queue', 'generating', 'done', 'not_found'])),
    video_url: optional(text),
    binary_data_base64: optional(Type.Null()),
    image_urls: optional(Type.Null()),
    resp_data: optional(text),
  }),
  request_id: requestId,
  status: Type.Integer(),
  time_elapsed: text,
});

/** One model and a list of models, in each format of model lists. */
export const modelAnswers = {
  chat: { one: named('ChatModel', chatModel), list: named('ChatModelList', chatModelList) },
  messages: {
    one: named('MessagesModel', messagesModel),
    list: named('MessagesModelList', messagesModelList),
  },
  generateContent: {
    one: named('GenerateContentModel', generateContentModel),
    list: named('GenerateContentModelList', generateContentModelList),
  },
} as const satisfies Record<Exclude<ModelListFormat, 'chatAndMessages'>, object>;

/** A video task, as created or shown, in each format. */
export const taskAnswers: Readonly<Record<VideoFormat, NamedSchema>> = {
  compat: named('VideoTask', compatTask),
  generic: named('GenericVideoTask', Type.Object(genericMembers)),
  vendork: named('VendorkVideoTask', vendorkTask),
  vendorj: named('VendorjVideoTask', vendorjTask),
};
