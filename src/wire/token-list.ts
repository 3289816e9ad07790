/**
 * Adds words to a comma-separated list (RFC 9110 section 5.6.1), and removes others.
 * @param list value of the header; may be empty
 */
export function editedList(list: string, added: readonly string[], dropped: ReadonlySet<string>): string {
  const words = list.split(',').map((word) => word.trim());
  const kept = words.filter((word) => word !== '' && !dropped.has(word));
  return [...kept, ...added.filter((word) => !kept.includes(word))].join(',');
}
