import { type Static, type TSchema, Type } from 'typebox';
import type { GatewayError } from '../errors.js';
import type { ImageSource } from '../media/image.js';
import { type JsonObject, wrongValue } from '../wire/json.js';
import type { FormPart } from '../wire/multipart.js';

/** The four formats in which video tasks are written, by clients and by upstreams. */
export const videoFormats = ['compat', 'vendork', 'vendorj', 'generic'] as const;
export type VideoFormat = (typeof videoFormats)[number];

const orNull = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);
const text = Type.String();
const number = Type.Number();
const format = Type.Enum([...videoFormats]);

/** A video task as kept in the store: plain JSON. Times are Unix milliseconds. */
export const taskRecord = Type.Object({
  /** Version of this record's form. */
  version: Type.Literal(1),
  /** `video_` and hex. */
  id: Type.String({ minLength: 1 }),
  /**
   * Id of the key that created it, which a rotation keeps, and its groups; one that shares videos shows it to its keys.
   */
  keyId: text,
  groups: Type.Array(text),
  /** Format of the client's request. */
  format,
  /** The model's name as clients know it. */
  model: text,
  upstream: Type.Object({
    name: text,
    /** Format that the upstream speaks. */
    format,
    model: text,
    /** The task's id at the upstream; null until it is known. */
    id: orNull(text),
    /** Identifies the upstream key that created the task; null if the upstream has no keys. */
    credential: orNull(text),
  }),
  /** Made from a text alone, or from an image. */
  operation: Type.Enum(['text', 'image']),
  /**
   * `submitting`: being sent to the upstream, and known only to the gateway. Then forward only: queued -> in_progress ->
   * completed | failed. The last two never change.
   */
  state: Type.Enum(['submitting', 'queued', 'in_progress', 'completed', 'failed']),
  /** Percent; 100 only for a completed task. */
  progress: Type.Integer({ minimum: 0, maximum: 100 }),
  createdAt: number,
  updatedAt: number,
  completedAt: orNull(number),
  /** When the record is removed. */
  expiresAt: number,
  /** As the upstream says, else as requested: seconds as a string, `WIDTHxHEIGHT`. */
  seconds: text,
  size: orNull(text),
  /** The client's own id of the task (vendork), or null. */
  externalId: orNull(text),
  /** The video. Each member is null until it is known. */
  result: orNull(
    Type.Object({
      /** URL at which the upstream keeps it, or null if the upstream names none. */
      url: orNull(text),
      /** Seconds. */
      duration: orNull(number),
      fps: orNull(number),
      width: orNull(number),
      height: orNull(number),
      seed: orNull(number),
      /** URL of the copy with a watermark (vendork); absent if there is none. */
      watermarkUrl: Type.Optional(text),
      /** Further videos of one request, as far as kept; absent if the upstream does not list them (all but vendork). */
      others: Type.Optional(
        Type.Array(Type.Object({ url: text, duration: orNull(number), watermarkUrl: Type.Optional(text) })),
      ),
      /** Absent for MP4, and if the upstream does not say. */
      format: Type.Optional(text),
    }),
  ),
  error: orNull(Type.Object({ code: text, message: text })),
  /** The charge when its upstream accepted it, which is corrected when it ends; absent if nothing was charged. */
  charge: Type.Optional(
    Type.Object({
      nanoUsd: number,
      /** Seconds of all its videos. */
      seconds: number,
      videos: number,
      /** The target's cost for the operator; null if unknown. */
      paidNanoUsd: orNull(number),
      /** The part of both for its seconds; absent in tasks of earlier versions, whose charge ignores the actual length. */
      secondsNanoUsd: Type.Optional(number),
      secondsPaidNanoUsd: Type.Optional(number),
      /** The cost of its seconds in each resolution that has a price of its own; absent if none has. */
      resolutions: Type.Optional(
        Type.Array(
          Type.Object({ resolution: text, secondsNanoUsd: number, secondsPaidNanoUsd: orNull(number) }),
        ),
      ),
      /** The pools of the budgets that it is charged to, and their total limits in nano-dollars. */
      budgets: Type.Array(Type.Object({ pool: text, limit: number })),
    }),
  ),
  /** It has ended, and its charge is still to be corrected. Written with the end, so that a crash does not lose it. */
  isOwed: Type.Optional(Type.Literal(true)),
});

type Frozen<Value> = { readonly [Name in keyof Value]: Frozen<Value[Name]> };
export type VideoTask = Frozen<Static<typeof taskRecord>>;
export type TaskState = VideoTask['state'];
export type VideoResult = NonNullable<VideoTask['result']>;
export type TaskFailure = NonNullable<VideoTask['error']>;
export type TaskCharge = NonNullable<VideoTask['charge']>;

/** An upstream's report on a task. */
export interface TaskUpdate {
  readonly state: Exclude<TaskState, 'submitting'>;
  /** Percent, or null if the upstream does not report it. */
  readonly progress: number | null;
  readonly completedAt: number | null;
  /** Of a task that is not completed: what the upstream says that the video will be. */
  readonly result: VideoResult | null;
  readonly error: TaskFailure | null;
}

/** A client's request for a task, in any format. */
export interface VideoRequest {
  /** Format of the request. */
  readonly format: VideoFormat;
  readonly operation: 'text' | 'image';
  /** The model's name as clients know it. */
  readonly model: string;
  readonly prompt: string | null;
  readonly negativePrompt: string | null;
  readonly image: ImageSource | null;
  /** The last image of the video. */
  readonly imageTail: ImageSource | null;
  readonly seconds: number | null;
  readonly width: number | null;
  readonly height: number | null;
  /** `16:9` */
  readonly aspectRatio: string | null;
  readonly fps: number | null;
  readonly seed: number | null;
  readonly count: number | null;
  readonly cfgScale: number | null;
  /** vendork's `std` or `pro`. */
  readonly mode: string | null;
  readonly externalId: string | null;
  /** Path of a length that is not a number, which an upstream of the same format may understand; else null. */
  readonly unreadLength: string | null;
  /** Why the request cannot be translated into another format, or null. If set, members may be null that the body has. */
  readonly fault: GatewayError | null;
  /** The body's members (or the form's text fields) as the client sent them, for an upstream of the same format. */
  readonly body: JsonObject;
  /**
   * The body's bytes, for an upstream of the same format; null for a form, and if they are to be written from `body`.
   */
  readonly json: Buffer | null;
  /** The parts of a form in order, including files; null for a JSON body. */
  readonly form: readonly FormPart[] | null;
}

/** One call to an upstream about a task. */
export interface VideoCall {
  readonly method: 'GET' | 'POST';
  /** Relative to the upstream's base URL, with its query. */
  readonly path: string;
  /** Null without a body. */
  readonly contentType: string | null;
  /** Chunks in order; empty without a body. */
  readonly body: readonly Buffer[];
}

/** A member about how a video is made, not about its content. */
export type VideoHint = 'fps' | 'seed' | 'mode' | 'cfg_scale';

/** Writes the calls to upstreams of one format, and reads their answers. */
export interface UpstreamFormat {
  /** Hints that it cannot express; a request of another format is translated without them. */
  readonly lacks: readonly VideoHint[];
  /**
   * @param model the model's name at the upstream
   * @param taskId the gateway's own id, for formats in which a task can carry its creator's id
   * @throws {GatewayError} of status 400, naming the client's member, for one that the format cannot express or drop
   */
  create(request: VideoRequest, model: string, taskId: string): VideoCall;
  /**
   * @param body body of an answer with a status below 300
   * @returns the task's id at the upstream, and its state if the answer has it
   * @throws {GatewayError} the error that the answer reports, or `upstream_error` for an unreadable answer
   */
  readCreated(body: Buffer): { readonly id: string; readonly update: TaskUpdate | null };
  poll(task: VideoTask): VideoCall;
  /** @throws {GatewayError} `not_found` when the upstream no longer knows the task; else as `readCreated` */
  readPolled(body: Buffer): TaskUpdate;
  /** Path of the content, for upstreams that serve it themselves; null if `result.url` locates it. */
  content(task: VideoTask, variant: string): string | null;
}

/** The context that a client format needs to render a task. */
export interface ShowContext {
  readonly requestId: string;
  /** Milliseconds since the request arrived. */
  readonly elapsedMs: number;
  /** Absolute URL under which the gateway serves the task's content. */
  readonly contentUrl: string;
}

/** Renders tasks for clients of one format, as JSON text. */
export interface VideoClientFormat {
  created(task: VideoTask, context: ShowContext): string;
  shown(task: VideoTask, context: ShowContext): string;
  /** The answer, of status 200, for a task that does not exist; null if the error format's 404 is used instead. */
  missing(id: string, context: ShowContext): string | null;
}

const contentTypes = {
  video: 'video/mp4',
  thumbnail: 'image/webp',
  spritesheet: 'image/jpeg',
} as const;

/** A content of a finished task. */
export interface VideoVariant {
  readonly name: keyof typeof contentTypes;
  /** Default content type, if the upstream names none. */
  readonly contentType: string;
}

/**
 * Reads the `variant` of a query for a task's content; an empty one means the video.
 * @throws {GatewayError} of status 400 for an unknown name
 */
export function videoVariant(text: string): VideoVariant {
  const name = text === '' ? 'video' : text;
  if (name !== 'video' && name !== 'thumbnail' && name !== 'spritesheet')
    throw wrongValue('variant', '"video", "thumbnail" or "spritesheet"');
  return { name, contentType: contentTypes[name] };
}
