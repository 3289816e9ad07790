import { isHttpUrl, registeredType } from '../../../conversation/media-source.js';
import type { MediaPart, MediaSource, TextPart } from '../../../conversation/request.js';
import { isObject, type JsonObject, textOrNull } from '../../../wire/json.js';
import { requireText, wrongValue } from '../../../wire/reading.js';
import { untranslatable } from '../../unsupported.js';

type ContentPart = TextPart | MediaPart;

/**
 * Reads content as blocks: a string is one text, nothing is none.
 * @param at path of the content in the client's body
 * @throws {GatewayError} of status 400 for anything else
 */
export function blocksOf(content: unknown, at: string): readonly JsonObject[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  if (content === null || content === undefined) return [];
  if (!Array.isArray(content)) throw wrongValue(at, 'a string or an array of blocks');
  const wrong = content.findIndex((block: unknown) => !isObject(block));
  if (wrong !== -1) throw wrongValue(`${at}[${wrong}]`, "an object with a 'type'");
  return content as JsonObject[];
}

/**
 * Reads the texts of a system prompt or a system message, without empty ones.
 * @throws {GatewayError} of status 400 for a block that is no text
 */
export function decodeTexts(content: unknown, at: string): string[] {
  return blocksOf(content, at)
    .map((block, index) => {
      const blockAt = `${at}[${index}]`;
      if (block.type !== 'text') throw untranslatable(blockAt, `of type '${String(block.type)}'`);
      return requireText(block, 'text', blockAt);
    })
    .filter((text) => text !== '');
}

/**
 * Reads a block of a user's message or of a tool's result. Documents of text become texts, and what is said of
 * others stands before them; `citations` and `cache_control` are dropped.
 * @param at path of the block in the client's body
 * @param out takes the parts: a document of blocks and a search result have several
 * @throws {GatewayError} of status 400 for blocks that are broken or that no other protocol knows
 */
export function decodeBlock(block: JsonObject, at: string, out: ContentPart[]): void {
  switch (block.type) {
    case 'text':
      out.push({ kind: 'text', text: requireText(block, 'text', at) });
      return;
    case 'image':
      out.push(decodeImage(block, at));
      return;
    case 'document':
      decodeDocument(block, at, out);
      return;
    case 'search_result':
      decodeSearchResult(block, at, out);
      return;
    default:
      throw untranslatable(at, `of type '${String(block.type)}'`);
  }
}

function decodeImage(block: JsonObject, at: string): MediaPart {
  const source = requireSource(block, at);
  return { kind: 'image', source: decodeSource(source, at, null), detail: null, name: null, at };
}

function decodeDocument(block: JsonObject, at: string, out: ContentPart[]): void {
  const source = requireSource(block, at);
  const title = textOrNull(block.title) ?? '';
  const context = textOrNull(block.context) ?? '';
  if (source.type === 'text') {
    const text = requireText(source, 'data', `${at}.source`);
    out.push({ kind: 'text', text: titled([title, context], text) });
  } else if (source.type === 'content') {
    const head = titled([title, context], '');
    if (head !== '') out.push({ kind: 'text', text: head });
    const contentAt = `${at}.source.content`;
    blocksOf(source.content, contentAt).forEach((inner, index) => {
      decodeBlock(inner, `${contentAt}[${index}]`, out);
    });
  } else {
    const media = decodeSource(source, at, 'application/pdf');
    if (context !== '') out.push({ kind: 'text', text: context });
    out.push({ kind: 'document', source: media, detail: null, name: fileName(title, media), at });
  }
}

/** Elsewhere a title is the name of a file, whose ending tells the type. */
function fileName(title: string, { mediaType }: MediaSource): string | null {
  if (title === '') return null;
  const isNamed = mediaType !== 'application/pdf' || title.toLowerCase().endsWith('.pdf');
  return isNamed ? title : `${title}.pdf`;
}

/** A search result becomes its text, under a head that says what it is of: the model is to name its sources. */
function decodeSearchResult(block: JsonObject, at: string, out: ContentPart[]): void {
  const text = decodeTexts(block.content, `${at}.content`).join('\n\n');
  out.push({
    kind: 'text',
    text: titled([textOrNull(block.title) ?? '', textOrNull(block.source) ?? ''], text),
  });
}

function titled(head: readonly string[], text: string): string {
  const lines = head.filter((line) => line !== '').join('\n');
  return lines === '' || text === '' ? lines + text : `${lines}\n\n${text}`;
}

/** @param spareType type of media that is not said: a document by URL is always a PDF here */
function decodeSource(source: JsonObject, at: string, spareType: string | null): MediaSource {
  if (source.type === 'url')
    return { kind: 'url', url: requireUrl(source, `${at}.source`), mediaType: spareType };
  if (source.type !== 'base64') throw untranslatable(`${at}.source`, `of type '${String(source.type)}'`);
  const mediaType = registeredType(textOrNull(source.media_type) ?? spareType ?? '');
  return { kind: 'data', mediaType, data: requireText(source, 'data', `${at}.source`) };
}

function requireUrl(source: JsonObject, at: string): string {
  const url = requireText(source, 'url', at);
  if (!isHttpUrl(url)) throw wrongValue(`${at}.url`, 'an http(s) URL');
  return url;
}

function requireSource(block: JsonObject, at: string): JsonObject {
  if (!isObject(block.source)) throw wrongValue(`${at}.source`, "an object with a 'type'");
  return block.source;
}
