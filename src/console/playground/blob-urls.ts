/** Addresses of what was made, which hold its bytes until they are let go. */
export interface BlobUrls {
  make(blob: Blob): string;
  /** Lets go of all that were made. */
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

/** The bytes of a text in base64; null for what is none. */
export function blobOfBase64(base64: string, type: string): Blob | null {
  try {
    return new Blob([Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))], { type });
  } catch {
    return null;
  }
}
