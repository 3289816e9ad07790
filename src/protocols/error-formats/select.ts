import type { VendorWords } from '../../config/types.js';
import { anthropic } from './anthropic.js';
import type { ErrorFormat } from './error-format.js';
import { google } from './google.js';
import { jimeng } from './jimeng.js';
import { kling } from './kling.js';
import { openai } from './openai.js';

/** How the path of an operation of a model ends. Names of fine-tuned models end so, too, but operations are POST alone. */
const modelOperation = /:[A-Za-z][A-Za-z0-9]*$/;

const googleVersions = new Set(['v1beta', 'v1beta1', 'v1alpha']);

/** Where the vendor's cloud has models. */
const cloudPath = /^\/v1\/(?:publishers|projects)\//;

/**
 * Tells in which error format a path is refused that no route knows, or whose route has not the method.
 * @param vendors the real words that stand beside the neutral path prefixes.
 */
export function createErrorFormatForPath(
  vendors: VendorWords,
): (method: string, path: string) => ErrorFormat {
  const klingWords = new Set(['vendork', ...vendors.vendork]);
  const jimengWords = new Set(['vendorj', ...vendors.vendorj]);
  return (method, path) => {
    if (path === '/v1/messages' || path.startsWith('/v1/messages/')) return anthropic;
    if (method === 'POST' && path.startsWith('/v1/models/') && modelOperation.test(path)) return google;
    const end = path.indexOf('/', 1);
    const word = end === -1 ? path.slice(1) : path.slice(1, end);
    if (googleVersions.has(word) || cloudPath.test(path)) return google;
    if (klingWords.has(word)) return kling;
    if (jimengWords.has(word)) return jimeng;
    return word === 'anthropic' ? anthropic : openai;
  };
}
