import { type TSchema, Type } from 'typebox';
import { compileSchema } from '../schema/compile.js';
import { parseObject } from '../wire/json.js';
import { type VideoTask, videoFormats } from './task.js';

const orNull = (schema: TSchema) => Type.Union([schema, Type.Null()]);
const text = Type.String();
const number = Type.Number();
const format = Type.Enum([...videoFormats]);

const record = compileSchema(
  Type.Object({
    version: Type.Literal(1),
    id: Type.String({ minLength: 1 }),
    keyId: text,
    groups: Type.Array(text),
    format,
    model: text,
    upstream: Type.Object({
      name: text,
      format,
      model: text,
      id: orNull(text),
      credential: orNull(text),
    }),
    operation: Type.Enum(['text', 'image']),
    state: Type.Enum(['submitting', 'queued', 'in_progress', 'completed', 'failed']),
    progress: Type.Integer({ minimum: 0, maximum: 100 }),
    createdAt: number,
    updatedAt: number,
    completedAt: orNull(number),
    expiresAt: number,
    seconds: text,
    size: orNull(text),
    externalId: orNull(text),
    result: orNull(
      Type.Object({
        url: orNull(text),
        duration: orNull(number),
        fps: orNull(number),
        width: orNull(number),
        height: orNull(number),
        seed: orNull(number),
      }),
    ),
    error: orNull(Type.Object({ code: text, message: text })),
  }),
);

/** The task as it stands in the store. */
export function writeTask(task: VideoTask): string {
  return JSON.stringify(task);
}

/** Reads what `writeTask` wrote. @returns null for any other text, such as a record of another version */
export function readTask(text: string): VideoTask | null {
  const value: unknown = parseObject(text);
  return record.check(value) ? (value as VideoTask) : null;
}
