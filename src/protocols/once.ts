/**
 * Which requests make or keep something at an upstream of the protocol itself, so that they are not sent a second time
 * once any of them has left. They are asked about a body only when something has gone wrong.
 */
import { withoutMembers } from '../wire/json-members.js';

/** @param body in pieces, as it is sent */
export type OnceRule = (body: readonly Buffer[]) => boolean;

/** What costs again, and does no other harm. */
export const never: OnceRule = () => false;

/** What makes something each time. */
export const always: OnceRule = () => true;

const ofStorage: ReadonlySet<string> = new Set(['store', 'background', 'conversation']);

/** What is kept at the upstream where the body asks for it. */
export const whereStored: OnceRule = (body) => isGiven(membersOf(body)?.get('store'));

/** What is kept at the upstream unless the body says not to (responses keep theirs by default). */
export const unlessUnstored: OnceRule = (body) => {
  const members = membersOf(body);
  return (
    members?.get('store') !== 'false' ||
    isGiven(members.get('background')) ||
    isGiven(members.get('conversation'))
  );
};

function isGiven(value: string | undefined): boolean {
  return value !== undefined && value !== 'null' && value !== 'false';
}

function membersOf(body: readonly Buffer[]): ReadonlyMap<string, string> | null {
  return (
    withoutMembers(body.length === 1 ? (body[0] as Buffer) : Buffer.concat(body), ofStorage)?.taken ?? null
  );
}
