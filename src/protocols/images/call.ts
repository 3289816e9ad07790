/** One call to an upstream. */
export interface ImageCall {
  /** Under the upstream's base URL. */
  readonly path: string;
  readonly contentType: string;
  /** Pieces in order. */
  readonly body: readonly Buffer[];
}
