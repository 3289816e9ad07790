import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { needleOf } from './json-skip.js';

/** Closes texts that clients carry for the gateway and that nobody else may read or change. */
export interface Sealer {
  /** @returns printable text without spaces */
  seal(text: string): string;
  /** @returns the text, or null for what was not sealed with this secret, or was changed */
  open(sealed: string): string | null;
}

const tag = 'gwc1.';
/** What a body must hold for a sealed text to be in it. */
export const sealMark = needleOf(`"${tag}`);
const cipher = 'aes-256-gcm';
const nonceBytes = 12;
const checkBytes = 16;

/**
 * Makes a sealer (AES-256-GCM, the key derived by HKDF from the secret).
 * @param secret Long and random. Gateways with the same secret open each other's texts.
 */
export function createSealer(secret: string): Sealer {
  const key = Buffer.from(hkdfSync('sha256', secret, '', 'model-gateway sealed text', 32));
  return {
    seal(text) {
      const nonce = randomBytes(nonceBytes);
      const encryption = createCipheriv(cipher, key, nonce);
      const sealed = Buffer.concat([encryption.update(text, 'utf8'), encryption.final()]);
      return tag + Buffer.concat([nonce, encryption.getAuthTag(), sealed]).toString('base64url');
    },
    open(sealed) {
      if (!sealed.startsWith(tag)) return null;
      const bytes = Buffer.from(sealed.slice(tag.length), 'base64url');
      if (bytes.length < nonceBytes + checkBytes) return null;
      const decryption = createDecipheriv(cipher, key, bytes.subarray(0, nonceBytes));
      decryption.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + checkBytes));
      try {
        const opened = decryption.update(bytes.subarray(nonceBytes + checkBytes));
        return Buffer.concat([opened, decryption.final()]).toString('utf8');
      } catch {
        return null;
      }
    },
  };
}
