/** Shorter texts gain nothing. */
const leastLength = 64;
/** All but the ASCII characters that stand for themselves in a JSON string. */
const special = /[^ !#-[\]-\u007f]/;

/**
 * A text as a JSON string: what `JSON.stringify` gives, in half its time for long texts in which nothing has to be
 * escaped, as those are that are files in base64.
 */
export function quoted(text: string): string {
  return text.length < leastLength || special.test(text) ? JSON.stringify(text) : `"${text}"`;
}
