const quote = 0x22;
const backslash = 0x5c;

/**
 * Returns a text as a JSON string of printable ASCII characters: it contains no line end, and nothing that a terminal
 * would interpret.
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

/** Escapes all characters of a JSON text that are not printable ASCII. */
export function asciiJson(json: string): string {
  return json.replace(others, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
