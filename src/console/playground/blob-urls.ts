/** Object URLs of results, which keep their bytes in memory until revoked. */
export interface BlobUrls {
  make(blob: Blob): string;
  /** Revokes all URLs. */
  clear(): void;
}

export function createBlobUrls(): BlobUrls {
  let urls: string[] = [];
  return {
    make(blob) {
      const url = URL.createObjectURL(blob);
      urls.push(url);
      return url;
    },
    clear() {
      for (const url of urls) URL.revokeObjectURL(url);
      urls = [];
    },
  };
}

/** Decodes base64; null for an invalid text. */
export function blobOfBase64(base64: string, type: string): Blob | null {
  try {
    return new Blob([Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))], { type });
  } catch {
    return null;
  }
}
