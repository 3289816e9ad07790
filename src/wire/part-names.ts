import { type GuardEntry, type MemberGuard, unclearMembers } from './member-guard.js';
import type { SteeringMember } from './steering-members.js';

/** What has to be clear among the names of a form's parts. */
export interface PartRules {
  readonly guard: MemberGuard;
  /** Names of parts of which there may be several, and which may have brackets behind them. */
  readonly many: ReadonlySet<string>;
}

/** The names of a form's parts as they come. */
export class PartNames {
  readonly #rules: PartRules;
  readonly #seen = new Map<GuardEntry, string>();

  constructor(rules: PartRules) {
    this.#rules = rules;
  }

  /**
   * Hears of the next part.
   * @returns the name by which an upstream would be led elsewhere, or null
   * @throws {GatewayError} of status 400 for a name that can be taken for another, or for one that is read
   */
  add(name: string): SteeringMember | null {
    const { guard, many } = this.#rules;
    // Parsers make lists and objects of what has brackets, leave out backslashes, and some decode words of mail.
    const base = baseOf(name);
    const entry = guard.entryOf(base) ?? (base.includes('=?') ? guard.entryOf(decodedWord(base)) : null);
    if (entry === null) return null;
    if (entry.kind === 'steering') return entry.spellings[0] as SteeringMember;
    const spelling = entry.spellings[0] as string;
    const isMany = many.has(spelling);
    const isSpelled = name === spelling || (isMany && name.startsWith(`${spelling}[`));
    const before = this.#seen.get(entry);
    if (!isSpelled || (before !== undefined && !(isMany && base === before)))
      throw unclearMembers('form', '', entry, before === undefined ? [name] : [before, name]);
    this.#seen.set(entry, base);
    return null;
  }
}

/** What stands before brackets, and before a path in them. */
function baseOf(name: string): string {
  const plain = name.includes('\\') ? name.replaceAll('\\', '') : name;
  const bracket = plain.indexOf('[');
  return bracket > 0 ? plain.slice(0, bracket) : plain;
}

const encodedWord = /=\?[^?]*\?([bq])\?([^?]*)\?=/gi;

/** A name as readers of mail see it that decode words in it (RFC 2047). */
function decodedWord(name: string): string {
  return name.replaceAll(encodedWord, (_, encoding: string, text: string) =>
    encoding.toLowerCase() === 'b'
      ? Buffer.from(text, 'base64').toString('utf8')
      : text.replaceAll(/=([0-9a-f]{2})/gi, (__, hex: string) =>
          String.fromCharCode(Number.parseInt(hex, 16)),
        ),
  );
}
