import { textDirectives } from '../faults/directives.js';
import { isObject } from '../http/json.js';
import type { Reply } from '../http/reply.js';
import { type JsonRequest, jsonReply, jsonRoutes } from '../http/route.js';
import { invalid, modelOf, required } from '../openai/values.js';

/** Prefixes of words that put a text into a category; the simulator knows only these. */
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

/** All categories, in the order of answers. */
const categories: readonly string[] = Object.keys(wordsOfCategory);

/** The categories that also apply to images. */
const imageCategories: ReadonlySet<string> = new Set([
  'self-harm',
  'self-harm/intent',
  'self-harm/instructions',
  'sexual',
  'violence',
  'violence/graphic',
]);

const unsuspected = 0.001;

/** Returns a text's score per category, from 0 to 1; above 0.9 if it contains a word of the category. */
function scoresOf(text: string): (category: string) => number {
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

const flaggedFrom = 0.5;

/** `POST /v1/moderations` */
export const moderationsRoutes = jsonRoutes({
  path: '/v1/moderations',
  answer: moderate,
});

/** The inputs of one result. */
interface Subject {
  readonly texts: readonly string[];
  /** URLs of images, which are judged by the words in them, since the simulator does not decode images. */
  readonly images: readonly string[];
}

function moderate(request: JsonRequest): Reply {
  const { body, digest } = request;
  const model = modelOf(body, 'sim-moderation', true);
  const subjects = readSubjects(required(body, 'input'));
  const asked = textDirectives(subjects[0]?.texts[0] ?? '').directives;
  const answer = { id: `modr-${digest.slice(0, 24)}`, model, results: subjects.map(resultOf) };
  return jsonReply(request, answer, asked);
}

/** One result for each text, and one for a list of parts. */
function readSubjects(input: unknown): readonly Subject[] {
  if (typeof input === 'string') {
    return [{ texts: [input], images: [] }];
  }
  if (!Array.isArray(input) || input.length === 0) {
    throw invalid('input', 'a text, an array of texts or an array of parts');
  }
  if (typeof input[0] === 'string') {
    return input.map((text: unknown, index) => {
      if (typeof text !== 'string') {
        throw invalid(`input[${index}]`, 'a text like the others');
      }
      return { texts: [text], images: [] };
    });
  }
  const texts: string[] = [];
  const images: string[] = [];
  for (const [index, part] of input.entries()) {
    const type: unknown = isObject(part) ? part.type : null;
    if (type === 'text' && typeof part.text === 'string') {
      texts.push(part.text);
    } else if (type === 'image_url' && isObject(part.image_url) && typeof part.image_url.url === 'string') {
      images.push(part.image_url.url);
    } else {
      throw invalid(`input[${index}]`, 'a part of type text or image_url');
    }
  }
  return [{ texts, images }];
}

function resultOf({ texts, images }: Subject): object {
  const ofTexts = scoresOf(texts.join('\n'));
  const ofImages = scoresOf(images.filter((url) => !url.startsWith('data:')).join('\n'));
  const scores = new Map(
    categories.map((category) => {
      const seen = images.length > 0 && imageCategories.has(category);
      const score = Math.max(texts.length > 0 ? ofTexts(category) : 0, seen ? ofImages(category) : 0);
      return [category, score] as const;
    }),
  );
  const flags = [...scores].map(([category, score]) => [category, score >= flaggedFrom] as const);
  const appliedTo = (category: string): string[] => [
    ...(texts.length > 0 ? ['text'] : []),
    ...(images.length > 0 && imageCategories.has(category) ? ['image'] : []),
  ];
  return {
    flagged: flags.some(([, flagged]) => flagged),
    categories: Object.fromEntries(flags),
    category_scores: Object.fromEntries(scores),
    category_applied_input_types: Object.fromEntries(
      categories.map((category) => [category, appliedTo(category)]),
    ),
  };
}
