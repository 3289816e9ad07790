import { wrongValue } from '../wire/reading.js';

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
