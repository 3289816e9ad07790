/** An image that a client gave: where it is, or what it is. */
export type ImageSource =
  | { readonly kind: 'url'; readonly url: string; readonly at: string }
  | {
      readonly kind: 'bytes';
      readonly bytes: Buffer;
      /** Lower-case, such as `image/png`; `application/octet-stream` where nothing tells. */
      readonly mediaType: string;
      readonly filename: string | null;
      /** Path of the image in the client's body, for messages of errors. */
      readonly at: string;
    };

/** An image that is still to be fetched. */
export type ImageUrl = Extract<ImageSource, { readonly kind: 'url' }>;
/** An image that is here. */
export type ImageBytes = Extract<ImageSource, { readonly kind: 'bytes' }>;
