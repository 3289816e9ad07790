/** The value of a key; where a map has none, the one that is made for it and kept there. */
export function entryOf<Key, Value>(map: Map<Key, Value>, key: Key, make: (key: Key) => Value): Value {
  const found = map.get(key);
  if (found !== undefined) return found;
  const made = make(key);
  map.set(key, made);
  return made;
}
