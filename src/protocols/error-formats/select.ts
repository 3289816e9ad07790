import type { VendorWords } from '../../config/types.js';
import { anthropic } from './anthropic.js';
import type { ErrorFormat } from './error-format.js';
import { google } from './google.js';
import { jimeng } from './jimeng.js';
import { kling } from './kling.js';
import { openai } from './openai.js';

/**
 * Suffix of the path of an operation on a model. Names of fine-tuned models may have the same form, but operations are
 * only POST.
 */
const modelOperation = /:[A-Za-z][A-Za-z0-9]*$/;

const googleVersions = new Set(['v1beta', 'v1beta1', 'v1alpha']);

/** Base of Gemini's OpenAI-compatible API. */
const compatibleBase = '/v1beta/openai';

/** Prefix of models at the vendor's cloud. */
const cloudPath = /^\/v1\/(?:publishers|projects)\//;

/**
 * Makes the function that returns the error format for a path without a route, or with a method that its route does not
 * have.
 * @param vendors the real words beside the neutral path prefixes
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
    if (path.startsWith(`${compatibleBase}/`)) return openai;
    if (googleVersions.has(word) || cloudPath.test(path)) return google;
    if (klingWords.has(word)) return kling;
    if (jimengWords.has(word)) return jimeng;
    return word === 'anthropic' ? anthropic : openai;
  };
}
