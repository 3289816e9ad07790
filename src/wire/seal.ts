import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';
import { needleOf } from './json-skip.js';

/** Encrypts texts that clients carry for the gateway and that nobody else may read or change. */
export interface Sealer {
  /** @returns printable text without spaces */
  seal(text: string): string;
  /** @returns the text, or null if it was not sealed with this secret for its owner, or was changed */
  open(sealed: string): string | null;
}

const tag = 'gwc1.';
/** Text that every body with a sealed text contains. */
export const sealMark = needleOf(`"${tag}`);
const cipher = 'aes-256-gcm';
const nonceBytes = 12;
const checkBytes = 16;

/**
 * Creates a sealer with AES-256-GCM. The key is derived by HKDF from the secret and the owner when it is first needed.
 * @param secret long and random. Gateways with the same secret open each other's texts
 * @param owner owner of the texts, which open for no other owner. Texts without an owner, as in earlier releases, open
 *   for every owner
 */
export function createSealer(secret: string, owner = ''): Sealer {
  let own: Buffer | null = null;
  const ownKey = (): Buffer => {
    own ??= keyOf(secret, owner);
    return own;
  };
  return {
    seal(text) {
      const nonce = randomBytes(nonceBytes);
      const encryption = createCipheriv(cipher, ownKey(), nonce);
      const sealed = Buffer.concat([encryption.update(text, 'utf8'), encryption.final()]);
      return tag + Buffer.concat([nonce, encryption.getAuthTag(), sealed]).toString('base64url');
    },
    open(sealed) {
      if (!sealed.startsWith(tag)) return null;
      const bytes = Buffer.from(sealed.slice(tag.length), 'base64url');
      if (bytes.length < nonceBytes + checkBytes) return null;
      return opened(bytes, ownKey()) ?? (owner === '' ? null : opened(bytes, keyOf(secret, '')));
    },
  };
}

const purpose = 'model-gateway sealed text';

/** Derives a key. An owner's name is hashed, since HKDF does not accept long ones. */
function keyOf(secret: string, owner: string): Buffer {
  const info = owner === '' ? purpose : `${purpose} of ${createHash('sha256').update(owner).digest('hex')}`;
  return Buffer.from(hkdfSync('sha256', secret, '', info, 32));
}

function opened(bytes: Buffer, key: Buffer): string | null {
  const decryption = createDecipheriv(cipher, key, bytes.subarray(0, nonceBytes));
  decryption.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + checkBytes));
  try {
    const text = decryption.update(bytes.subarray(nonceBytes + checkBytes));
    return Buffer.concat([text, decryption.final()]).toString('utf8');
  } catch {
    return null;
  }
}
