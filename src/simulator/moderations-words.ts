/** Beginnings of words that put a text into a category; the simulator knows no more than these. */
const wordsOfCategory: Readonly<Record<string, readonly string[]>> = {
  harassment: ['idiot', 'loser', 'moron', 'stupid'],
  'harassment/threatening': ['threaten'],
  hate: ['hate', 'hatred', 'racist'],
  'hate/threatening': ['genocid'],
  illicit: ['counterfeit', 'shoplift'],
  'illicit/violent': ['explosive', 'grenade'],
  'self-harm': ['suicid', 'selfharm'],
  'self-harm/intent': ['suicidal'],
  'self-harm/instructions': ['noose'],
  sexual: ['porn', 'erotic', 'sexual'],
  'sexual/minors': ['childporn'],
  violence: ['grenade', 'kill', 'murder', 'stabb', 'violen'],
  'violence/graphic': ['behead', 'bloodbath', 'gory'],
};

/** All categories, in the order in which answers have them. */
export const categories: readonly string[] = Object.keys(wordsOfCategory);

/** The categories for which images are looked at as well. */
export const imageCategories: ReadonlySet<string> = new Set([
  'self-harm',
  'self-harm/intent',
  'self-harm/instructions',
  'sexual',
  'violence',
  'violence/graphic',
]);

const unsuspected = 0.001;

/** Judges a text: how likely it is of a category, from 0 to 1, above 0.9 as soon as one word of it is there. */
export function scoresOf(text: string): (category: string) => number {
  const words =
    text
      .normalize('NFKC')
      .toLowerCase()
      .match(/\p{L}+/gu) ?? [];
  return (category) => {
    const beginnings = wordsOfCategory[category] ?? [];
    const hits = words.filter((word) => beginnings.some((beginning) => word.startsWith(beginning))).length;
    return hits === 0 ? unsuspected : 1 - 0.1 / (1 + hits);
  };
}
