const quote = 0x22;
const backslash = 0x5c;

/**
 * A text as a JSON string of nothing but ASCII characters that can be seen: it never ends a line, and a terminal obeys
 * nothing of it.
 */
export function asciiQuoted(text: string): string {
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char < 0x20 || char > 0x7e || char === quote || char === backslash)
      return asciiJson(JSON.stringify(text));
  }
  return `"${text}"`;
}

const others = /[\u007f-\uffff]/g;

/** A text of JSON with all but ASCII's visible characters in escapes, as those are that JSON itself wants escaped. */
export function asciiJson(json: string): string {
  return json.replace(others, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
