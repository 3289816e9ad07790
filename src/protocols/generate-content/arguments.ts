import { parseObject } from '../../wire/json.js';

/** True for the JSON text of an object. */
export function isObjectText(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === 0x7b) return parseObject(text) !== null;
    if (unit !== 0x20 && unit !== 0x0a && unit !== 0x0d && unit !== 0x09) return false;
  }
  return false;
}
