const keyParameter = /key(?:=|%3d)[^&]*/gi;
/** Nearly all paths have neither. */
const mayHaveKey = /[=%]/;

/**
 * A path as operators see it, who may keep it: a client chooses what is in it, and how long it is. The query is no part of
 * it, unless a client has encoded its question mark, and a key that it then has is not shown.
 * @param longest characters that are shown
 */
export function shownPath(path: string, longest: number): string {
  const shown = cut(path, longest);
  return mayHaveKey.test(shown) ? shown.replace(keyParameter, 'key=…') : shown;
}

/** As much of a text as may be shown, and a sign that there is more. */
export function cut(text: string, longest: number): string {
  return text.length > longest ? `${text.slice(0, longest)}…` : text;
}
