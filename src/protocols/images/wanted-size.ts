import type { WantedImages } from '../images-translation.js';
import type { ImageStyle } from './fetched.js';
import type { ImageSize } from './request.js';

/**
 * The sizes that all models of OpenAI's images API take
 * (https://platform.openai.com/docs/api-reference/images/create).
 */
const openaiSizes: readonly ImageSize[] = [
  { width: 1024, height: 1024 },
  { width: 1536, height: 1024 },
  { width: 1024, height: 1536 },
];
/** Pixels in all of each of them, more or less. */
const openaiEdge = 1024;
/** Models want edges of whole blocks. */
const block = 16;
/** How far the shape may be from the one that is asked for, as a part of it. */
const tolerance = 0.04;

/** The size to ask an upstream for, and which of the client's members it does not say. */
interface WantedSize {
  /** Null where the client leaves it open. */
  readonly size: ImageSize | null;
  readonly leftOut: readonly string[];
}

/**
 * The size of images whose shape and resolution a client has named: where the upstream takes any, the one that is asked
 * for, else the nearest shape that all of its models have.
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
