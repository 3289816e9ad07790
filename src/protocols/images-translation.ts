import type { Usage } from '../conversation/usage.js';
import type { ImageSource } from '../media/image.js';
import type { JsonObject } from '../wire/json.js';

/** A setting of a client, with its path in the body. */
export interface Placed<Value> {
  readonly value: Value;
  readonly at: string;
}

/** What a call of a text protocol requests of a model that makes images. */
export interface WantedImages {
  readonly prompt: string;
  /** Images to change or to use; empty for a new image. */
  readonly images: readonly ImageSource[];
  /** Width divided by height. */
  readonly ratio: Placed<number> | null;
  /** Edge of a square image in pixels. An image of another shape has the same number of pixels in total. */
  readonly edge: Placed<number> | null;
  readonly count: number;
  /** Members of the body that have no meaning here. */
  readonly leftOut: readonly string[];
}

export interface MadeImage {
  readonly mediaType: string;
  readonly base64: string;
}

/** What an answer with images is encoded from. */
export interface MadeImages {
  readonly images: readonly MadeImage[];
  readonly usage: Usage | null;
  /** The client's name of the model. */
  readonly model: string;
  /** Letters and digits, unique to the call, from which the ids of the answer are made. */
  readonly id: string;
  /** Framing of the only event of a stream; null for an answer that is not a stream. */
  readonly framing: 'sse' | 'array' | null;
}

/** How upstreams that make images at separate endpoints serve calls of a text protocol. */
export interface ImagesTranslation {
  /** The member that holds an image in a body. */
  readonly imageMember: string;
  /**
   * Returns the number of images that a body requests, or 0.
   * @param body a body that passed the schema of its route; its long strings may be cut
   */
  imagesAsked(body: JsonObject): number;
  /**
   * @param body the body with its long strings
   * @throws {GatewayError} of status 400, naming the member, if no image can be made of the body
   */
  decode(body: JsonObject): WantedImages;
  /** Returns the whole body of the answer. */
  encode(made: MadeImages): string;
}
