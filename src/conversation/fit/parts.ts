import type { Answer, AnswerPart } from '../answer.js';

/** The answer with each part of its choices changed. */
export function mapParts(answer: Answer, change: (part: AnswerPart, choice: number) => AnswerPart): Answer {
  const choices = answer.choices.map((choice, index) => ({
    ...choice,
    parts: choice.parts.map((part) => change(part, index)),
  }));
  return { ...answer, choices };
}

/** Whether an answer has a part of reasoning: most have none, and then nothing of them is to be moved. */
export function hasReasoning({ choices }: Answer): boolean {
  for (const { parts } of choices) for (const { kind } of parts) if (kind === 'reasoning') return true;
  return false;
}
