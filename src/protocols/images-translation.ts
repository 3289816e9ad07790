import type { Usage } from '../conversation/usage.js';
import type { ImageSource } from '../media/image.js';
import type { JsonObject } from '../wire/json.js';

/** A setting of a client, and where it stands in the body. */
export interface Placed<Value> {
  readonly value: Value;
  readonly at: string;
}

/** What a call of a protocol of texts asks of a model that makes images. */
export interface WantedImages {
  readonly prompt: string;
  /** What is to be changed or used; none for a new image. */
  readonly images: readonly ImageSource[];
  /** Width by height. */
  readonly ratio: Placed<number> | null;
  /** Pixels of the edge of a square image; of another shape it has as many in all. */
  readonly edge: Placed<number> | null;
  readonly count: number;
  /** Members of the body that say nothing here. */
  readonly leftOut: readonly string[];
}

export interface MadeImage {
  readonly mediaType: string;
  readonly base64: string;
}

/** What an answer with images is written from. */
export interface MadeImages {
  readonly images: readonly MadeImage[];
  readonly usage: Usage | null;
  /** The model's name as the client used it. */
  readonly model: string;
  /** What the ids of the answer are made of: letters and digits, unique to the call. */
  readonly id: string;
  /** How the only event of a stream is framed; null for an answer that is none. */
  readonly framing: 'sse' | 'array' | null;
}

/** How calls of a protocol of texts are served by upstreams that make images at endpoints of their own. */
export interface ImagesTranslation {
  /** The member in which a body has an image. */
  readonly imageMember: string;
  /**
   * How many images a body asks for; 0 for none.
   * @param body that has passed the check of its route; its long strings may be cut
   */
  imagesAsked(body: JsonObject): number;
  /**
   * @param body with its long strings
   * @throws {GatewayError} of status 400, naming the member, for what no image can be made of
   */
  decode(body: JsonObject): WantedImages;
  /** The whole body of the answer. */
  encode(made: MadeImages): string;
}
