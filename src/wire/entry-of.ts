/** Returns the value of a key. If the map has none, it is created and stored. */
export function entryOf<Key, Value>(map: Map<Key, Value>, key: Key, make: (key: Key) => Value): Value {
  const found = map.get(key);
  if (found !== undefined) return found;
  const made = make(key);
  map.set(key, made);
  return made;
}
