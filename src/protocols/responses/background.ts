import { contains, needleOf, withoutMembers } from '../../wire/json-skip.js';

const member = 'background';
const key = needleOf(`"${member}"`);
const names: ReadonlySet<string> = new Set([member]);

/** Names the member by which a response is made in the background, to be asked for by its id; null where it is not. */
export function backgroundIn(body: Buffer): string | null {
  if (!contains(body, key)) return null;
  const value = withoutMembers(body, names)?.taken.get(member);
  return value === undefined || value === 'null' || value === 'false' ? null : member;
}
