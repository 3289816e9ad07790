import type { ImageRequest } from '../../../src/protocols/images/request.js';

/** The smallest files that are known by their first bytes. */
export const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex');
export const jpeg = Buffer.from('ffd8ffe000104a46494600', 'hex');

export const imageUrl = 'https://images.example/cat.png';
export const pngUrl = `data:image/png;base64,${png.toString('base64')}`;

type Item = { readonly text?: unknown; readonly image?: unknown };

/** A body with `input`: one message of the user. */
export function inputBody(content: readonly Item[], more: object = {}): Record<string, unknown> {
  return { model: 'm', input: { messages: [{ role: 'user', content }] }, ...more };
}

/** A body with a prompt. */
export function promptBody(more: object = {}): Record<string, unknown> {
  return { model: 'm', prompt: 'A cat', ...more };
}

/** A request that says nothing but what it must. */
export const plain: ImageRequest = {
  operation: 'generate',
  form: 'prompt',
  prompt: 'A cat',
  images: [],
  mask: null,
  otherFiles: [],
  negativePrompt: null,
  promptExtend: null,
  watermark: null,
  size: null,
  count: null,
  responseFormat: null,
  stream: false,
  extras: {},
  parameters: {},
  unread: [],
};

/** A body in pieces, as JSON. */
export function jsonOf(body: readonly Buffer[]): Record<string, unknown> {
  return JSON.parse(Buffer.concat(body).toString('utf8')) as Record<string, unknown>;
}
