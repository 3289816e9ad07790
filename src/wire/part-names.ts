import { ambiguousMembers, type GuardEntry, type MemberGuard } from './member-guard.js';
import type { SteeringMember } from './routed-members.js';

/** Rules for the names of a form's parts. */
export interface PartRules {
  readonly guard: MemberGuard;
  /** Names that may occur several times, and that brackets may follow. */
  readonly many: ReadonlySet<string>;
}

/** Checks the names of a form's parts as they arrive. */
export class PartNames {
  readonly #rules: PartRules;
  readonly #seen = new Map<GuardEntry, string>();

  constructor(rules: PartRules) {
    this.#rules = rules;
  }

  /**
   * Checks the name of the next part.
   * @returns the steering member that the name stands for, or null
   * @throws {GatewayError} of status 400 for an ambiguous name
   */
  add(name: string): SteeringMember | null {
    const { guard, many } = this.#rules;
    // Parsers build lists and objects from names with brackets and ignore backslashes. Some decode encoded words.
    const base = nameWithoutBrackets(name);
    const entry = guard.entryOf(base) ?? (base.includes('=?') ? guard.entryOf(decodedWord(base)) : null);
    if (entry === null) return null;
    if (entry.kind === 'steering') return entry.spellings[0] as SteeringMember;
    const spelling = entry.spellings[0] as string;
    const isMany = many.has(spelling);
    const isSpelled = name === spelling || (isMany && name.startsWith(`${spelling}[`));
    const before = this.#seen.get(entry);
    if (!isSpelled || (before !== undefined && !(isMany && base === before)))
      throw ambiguousMembers('form', '', entry, before === undefined ? [name] : [before, name]);
    this.#seen.set(entry, base);
    return null;
  }
}

/** Returns the name before the first bracket, without backslashes. */
export function nameWithoutBrackets(name: string): string {
  const plain = name.includes('\\') ? name.replaceAll('\\', '') : name;
  const bracket = plain.indexOf('[');
  return bracket > 0 ? plain.slice(0, bracket) : plain;
}

const encodedWord = /=\?[^?]*\?([bq])\?([^?]*)\?=/gi;

/** Decodes encoded words in a name (RFC 2047). */
function decodedWord(name: string): string {
  return name.replaceAll(encodedWord, (_, encoding: string, text: string) =>
    encoding.toLowerCase() === 'b'
      ? Buffer.from(text, 'base64').toString('utf8')
      : text.replaceAll(/=([0-9a-f]{2})/gi, (__, hex: string) =>
          String.fromCharCode(Number.parseInt(hex, 16)),
        ),
  );
}
