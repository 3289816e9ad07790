import type { WantedImages } from '../images-translation.js';
import type { ImageStyle } from './fetched.js';
import type { ImageSize } from './request.js';

/**
 * The sizes that all models of OpenAI's images API accept
 * (https://platform.openai.com/docs/api-reference/images/create).
 */
const openaiSizes: readonly ImageSize[] = [
  { width: 1024, height: 1024 },
  { width: 1536, height: 1024 },
  { width: 1024, height: 1536 },
];
/** Edge of a square with about as many pixels as each of these sizes. */
const openaiEdge = 1024;
/** Models require edges that are multiples of this. */
const block = 16;
/** Maximum relative difference from the requested aspect ratio. */
const tolerance = 0.04;

/** The size to request from an upstream, and the client's members that it does not express. */
interface WantedSize {
  /** Null if the client leaves it open. */
  readonly size: ImageSize | null;
  readonly leftOut: readonly string[];
}

/**
 * Returns the size for the aspect ratio and resolution that a client gave. If the upstream accepts any size, it is the
 * requested one, else the nearest aspect ratio that all of its models support.
 */
export function wantedSize(
  style: ImageStyle,
  { ratio, edge }: Pick<WantedImages, 'ratio' | 'edge'>,
): WantedSize {
  if (style === 'dashscope') {
    const root = Math.sqrt(ratio?.value ?? 1);
    const pixels = edge?.value ?? openaiEdge;
    const size = { width: inBlocks(pixels * root), height: inBlocks(pixels / root) };
    return { size: ratio === null && edge === null ? null : size, leftOut: [] };
  }
  const leftOut = edge === null || edge.value === openaiEdge ? [] : [edge.at];
  if (ratio === null) return { size: null, leftOut };
  const distance = ({ width, height }: ImageSize) => Math.abs(Math.log(width / height / ratio.value));
  const [size = null] = [...openaiSizes].sort((one, other) => distance(one) - distance(other));
  const isNear = size !== null && distance(size) < tolerance;
  return { size, leftOut: isNear ? leftOut : [ratio.at, ...leftOut] };
}

function inBlocks(pixels: number): number {
  return Math.max(1, Math.round(pixels / block)) * block;
}
