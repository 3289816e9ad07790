import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { callerAt } from './callers.js';

const words =
  'the of and to in is that it was for on are as with his they at be this from have or by one had not but what all were when we there can an your which their said if do will each about how up out them then she many some so these would other into has more her two like him see time could no make than first been its who now people my made over did down only way find use may water long little very after words called just where most know';

/** Returns text with the punctuation of prose: the same text for the same length in every run. */
export function prose(length: number): string {
  const list = words.split(' ');
  let seed = 42;
  let text = '';
  while (text.length < length) {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    const word = list[seed % list.length] ?? '';
    text += seed % 71 === 0 ? `"${word}," she said.\n\n` : seed % 11 === 0 ? `${word}. ` : `${word} `;
  }
  return text.slice(0, length);
}

/**
 * Makes a chat request with two messages. A streamed one requests the usage chunk, so that every contender sends the
 * same bytes.
 * @param size length of the body in bytes
 */
export function chatBody(size: number, stream: boolean, model: string = callerAt(0).model): string {
  const make = (content: string): string =>
    JSON.stringify({
      model,
      messages: [
        { role: 'system', content: 'You are a careful reader. Answer in one sentence.' },
        { role: 'user', content },
      ],
      max_tokens: 256,
      temperature: 0.2,
      ...(stream ? { stream: true, stream_options: { include_usage: true } } : {}),
    });
  const room = Math.max(0, size - make('').length);
  // Escapes make the text longer, so the tail is cut to fit and filled up.
  let content = prose(room);
  while (make(content).length > size) content = content.slice(0, -(make(content).length - size));
  const body = make(content);
  return make(content + '.'.repeat(Math.max(0, size - body.length)));
}

/** Writes a body to the bench's directory. @returns its path */
export function bodyFile(directory: string, name: string, body: string): string {
  const file = join(directory, `${name}.json`);
  writeFileSync(file, body);
  return file;
}

/**
 * Makes the request of `chatBody` in the other text protocols.
 * @param content of the user's turn
 */
export function translatedBodies(content: string, stream: boolean, model: string = callerAt(0).model) {
  const system = 'You are a careful reader. Answer in one sentence.';
  const responses = {
    model,
    max_output_tokens: 256,
    temperature: 0.2,
    stream,
    instructions: system,
    input: content,
  };
  return {
    messages: JSON.stringify({
      model,
      max_tokens: 256,
      temperature: 0.2,
      stream,
      system,
      messages: [{ role: 'user', content }],
    }),
    // Not stored: storing it is different work from translating it.
    responses: JSON.stringify({ ...responses, store: false }),
    'responses (kept)': JSON.stringify(responses),
    generateContent: JSON.stringify({
      systemInstruction: { parts: [{ text: system }] },
      generationConfig: { maxOutputTokens: 256, temperature: 0.2 },
      contents: [{ role: 'user', parts: [{ text: content }] }],
    }),
  };
}
