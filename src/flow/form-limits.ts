import type { Snapshot } from '../config/types.js';
import type { MultipartLimits } from '../wire/multipart.js';

const mostParts = 128;
const partHeadBytes = 8 * 1024;
/** A prompt of 32,000 characters at four bytes each fits. */
const fieldBytes = 256 * 1024;

/** What a form may be like. */
export function formLimits({ limits }: Snapshot): MultipartLimits {
  return { parts: mostParts, headerBytes: partHeadBytes, fieldBytes, fileBytes: limits.uploadBytes };
}
