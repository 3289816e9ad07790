const address = /^https?:\/\/[^\s/]+/i;
const dataHead = /^data:image\/[a-z0-9.+-]+;base64,/i;

/** Whether a text is base64 (RFC 4648, section 4) and nothing else. */
export function isBase64(text: string): boolean {
  return /^[^=]/.test(text) && !/[^A-Za-z0-9+/]/.test(text.replace(/={1,2}$/, ''));
}

/** Whether a text is an `http(s):` address. */
export function isAddress(text: string): boolean {
  return address.test(text);
}

/** Whether a text is where an image is, or a `data:` URL with the image itself in base64. Nothing is fetched. */
export function isImageUrl(text: string): boolean {
  const head = dataHead.exec(text)?.[0];
  return head === undefined ? isAddress(text) : isBase64(text.slice(head.length));
}
