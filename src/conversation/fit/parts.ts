import type { Answer, AnswerPart } from '../answer.js';

/** The answer with each part of its choices changed. */
export function mapParts(answer: Answer, change: (part: AnswerPart, choice: number) => AnswerPart): Answer {
  const choices = answer.choices.map((choice, index) => ({
    ...choice,
    parts: choice.parts.map((part) => change(part, index)),
  }));
  return { ...answer, choices };
}
