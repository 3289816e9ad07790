import { type ImageFile, type ImageSource, type ImageUrl, readImageFile } from '../../media/image.js';
import type { ImageRequest } from './request.js';

/** How an upstream accepts requests. `openai-files` accepts the images of an edit only as files. */
export type ImageStyle = 'openai' | 'openai-files' | 'dashscope';

/**
 * Lists the images that are given by URL but that an upstream of this style accepts only as bytes. Each URL occurs
 * once, in the order of the body.
 */
export function imagesToFetch({ images, mask }: ImageRequest, style: ImageStyle): readonly ImageUrl[] {
  if (style !== 'openai-files') return [];
  const found = new Map<string, ImageUrl>();
  for (const image of mask === null ? images : [...images, mask])
    if (image.kind === 'url' && !found.has(image.url)) found.set(image.url, image);
  return [...found.values()];
}

/**
 * Replaces the URLs of images that were fetched by their bytes. Images that are not in the map keep their URLs.
 * @throws {GatewayError} with status 400, naming the image, for one without bytes
 */
export function withFetched(request: ImageRequest, fetched: ReadonlyMap<string, ImageFile>): ImageRequest {
  const put = (image: ImageSource): ImageSource => {
    const file = image.kind === 'url' ? fetched.get(image.url) : undefined;
    return file === undefined ? image : readImageFile(file, image.at);
  };
  return {
    ...request,
    images: request.images.map(put),
    mask: request.mask === null ? null : put(request.mask),
  };
}
