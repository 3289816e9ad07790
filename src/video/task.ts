import { type Static, type TSchema, Type } from 'typebox';
import type { GatewayError } from '../errors.js';
import type { ImageSource } from '../media/image.js';
import type { JsonObject } from '../wire/json.js';
import type { FormPart } from '../wire/multipart.js';

/** The four formats in which video tasks are written, by clients and by upstreams. */
export const videoFormats = ['compat', 'vendork', 'vendorj', 'generic'] as const;
export type VideoFormat = (typeof videoFormats)[number];

const orNull = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);
const text = Type.String();
const number = Type.Number();
const format = Type.Enum([...videoFormats]);

/** A video task as it is kept in the store: plain JSON. Times are Unix milliseconds. */
export const taskRecord = Type.Object({
  /** Of this record's form. */
  version: Type.Literal(1),
  /** `video_` and hex. */
  id: Type.String({ minLength: 1 }),
  /** Id of the key that made it, which a rotation keeps, and its groups: one that shares its tasks shows it to its keys. */
  keyId: text,
  groups: Type.Array(text),
  /** Format in which it was asked for. */
  format,
  /** The model's name as clients know it. */
  model: text,
  upstream: Type.Object({
    name: text,
    /** Format that the upstream speaks. */
    format,
    model: text,
    /** The task's id there; null until it is known. */
    id: orNull(text),
    /** Tells which of the upstream's keys made the task; null where it has none. */
    credential: orNull(text),
  }),
  /** From a text alone, or from an image. */
  operation: Type.Enum(['text', 'image']),
  /**
   * `submitting`: the upstream is being asked, and nobody knows the task yet but the gateway. Then forward only: queued
   * -> in_progress -> completed | failed. The last two never change.
   */
  state: Type.Enum(['submitting', 'queued', 'in_progress', 'completed', 'failed']),
  /** Percent; 100 only for a completed task. */
  progress: Type.Integer({ minimum: 0, maximum: 100 }),
  createdAt: number,
  updatedAt: number,
  completedAt: orNull(number),
  /** When the record goes. */
  expiresAt: number,
  /** What was asked for: seconds as text, `WIDTHxHEIGHT`. */
  seconds: text,
  size: orNull(text),
  /** The client's own name for the task (vendork), or null. */
  externalId: orNull(text),
  /** What is known of the video itself. Each part is null until it is known. */
  result: orNull(
    Type.Object({
      /** Where the upstream keeps it, for upstreams that give an address; else null. */
      url: orNull(text),
      /** Seconds. */
      duration: orNull(number),
      fps: orNull(number),
      width: orNull(number),
      height: orNull(number),
      seed: orNull(number),
    }),
  ),
  error: orNull(Type.Object({ code: text, message: text })),
  /** What it was charged when its upstream had taken it, which is put right when it ends; absent where nothing was. */
  charge: Type.Optional(
    Type.Object({
      nanoUsd: number,
      /** Of all its videos. */
      seconds: number,
      videos: number,
      /** What its target has cost whoever runs the gateway; null where that is not known. */
      paidNanoUsd: orNull(number),
      /** How much of both is for its seconds; absent in tasks of earlier versions, whose charge stands however long they last. */
      secondsNanoUsd: Type.Optional(number),
      secondsPaidNanoUsd: Type.Optional(number),
      /** What its seconds would be in each resolution that has a price of its own; absent where none has. */
      resolutions: Type.Optional(
        Type.Array(
          Type.Object({ resolution: text, secondsNanoUsd: number, secondsPaidNanoUsd: orNull(number) }),
        ),
      ),
      /** The budgets that pay for it, by their pools and what these are in all, in nano-dollars. */
      budgets: Type.Array(Type.Object({ pool: text, limit: number })),
    }),
  ),
  /** It has ended, and what it was charged is yet to be put right. Written with the end, so that no crash forgets it. */
  isOwed: Type.Optional(Type.Literal(true)),
});

type Frozen<Value> = { readonly [Name in keyof Value]: Frozen<Value[Name]> };
export type VideoTask = Frozen<Static<typeof taskRecord>>;
export type TaskState = VideoTask['state'];
export type VideoResult = NonNullable<VideoTask['result']>;
export type TaskFailure = NonNullable<VideoTask['error']>;
export type TaskCharge = NonNullable<VideoTask['charge']>;

/** What an upstream said of a task. */
export interface TaskUpdate {
  readonly state: Exclude<TaskState, 'submitting'>;
  /** Percent, or null where the upstream does not say. */
  readonly progress: number | null;
  readonly completedAt: number | null;
  readonly result: VideoResult | null;
  readonly error: TaskFailure | null;
}

/** What a client asks for when it makes a task, whatever the format. */
export interface VideoRequest {
  /** Format in which it was asked for. */
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
  /** Path of a length that is no number: it is for an upstream of the same format to understand. Else null. */
  readonly unreadLength: string | null;
  /** Why the request cannot be said in another format, whose members then may be null that the body has; else null. */
  readonly fault: GatewayError | null;
  /** The body's members (or the form's text fields) as the client wrote them, for an upstream of the same format. */
  readonly body: JsonObject;
  /** The parts of a body that was a form, in order and with the files; else null. */
  readonly form: readonly FormPart[] | null;
}

/** One call to an upstream about a task. */
export interface VideoCall {
  readonly method: 'GET' | 'POST';
  /** Under the upstream's base URL, with its query. */
  readonly path: string;
  /** Null where there is no body. */
  readonly contentType: string | null;
  /** Pieces in order; empty where there is no body. */
  readonly body: readonly Buffer[];
}

/** A member that says how a video is to be made, and not what is to be in it. */
export type VideoHint = 'fps' | 'seed' | 'mode' | 'cfg_scale';

/** How upstreams of one format are asked, and how their answers are read. */
export interface UpstreamFormat {
  /** Hints that it has no words for: a request that came in another format is asked without them. */
  readonly unsaid: readonly VideoHint[];
  /**
   * @param model the model's name at the upstream
   * @param taskId the gateway's own id, for formats in which a task can carry a name of its maker
   * @throws {GatewayError} of status 400, naming the client's member, for what the format cannot say and may not drop
   */
  create(request: VideoRequest, model: string, taskId: string): VideoCall;
  /**
   * @param body of an answer with a status below 300
   * @returns the task's id there, and its state where the answer tells it
   * @throws {GatewayError} what the answer says went wrong, or `upstream_error` for one that is no answer
   */
  readCreated(body: Buffer): { readonly id: string; readonly update: TaskUpdate | null };
  poll(task: VideoTask): VideoCall;
  /** @throws {GatewayError} `not_found` when the upstream does not know the task any more; else as `readCreated` */
  readPolled(body: Buffer): TaskUpdate;
  /** Where the bytes are, for upstreams that serve them themselves; null where `result.url` names them. */
  content(task: VideoTask, variant: string): string | null;
}

/** What a client format may need to know to show a task. */
export interface ShowContext {
  readonly requestId: string;
  /** Milliseconds since the request came. */
  readonly elapsedMs: number;
  /** Absolute URL under which the gateway serves the task's content. */
  readonly contentUrl: string;
}

/** How clients of one format read tasks. Both give JSON text. */
export interface VideoClientFormat {
  created(task: VideoTask, context: ShowContext): string;
  shown(task: VideoTask, context: ShowContext): string;
  /** What is answered for a task that is not there, with its status; null where the error format's 404 says it. */
  missing(id: string, context: ShowContext): string | null;
}
