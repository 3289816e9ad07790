import { test } from 'tap';
import { LeftOut } from '../../../src/conversation/left-out.js';
import { GroundingWriter } from '../../../src/protocols/generate-content/grounding-encode.js';

interface Support {
  readonly segment: { readonly startIndex: number; readonly endIndex: number; readonly text?: string };
}

function supportsOf(writer: GroundingWriter): readonly Support[] {
  return JSON.parse(`{"":0${writer.text()}}`).groundingMetadata.groundingSupports;
}

test('citations quote no more words together than a text may have', (t) => {
  const lost = new LeftOut();
  const writer = new GroundingWriter(true, lost);
  writer.addText('a'.repeat(256 * 1024));
  for (let number = 0; number < 1000; number++)
    writer.addCitation({ start: number, end: 256 * 1024, url: `https://x/${number}`, title: '' });
  writer.addCitation({ start: 0, end: 0, url: 'https://x/0', title: '' });
  const supports = supportsOf(writer);
  t.equal(supports.length, 1000);
  t.equal(supports[0]?.segment.text?.length, 256 * 1024);
  t.strictSame(supports[1]?.segment, { startIndex: 1, endIndex: 256 * 1024 });
  t.ok(writer.text().length < 512 * 1024);
  t.strictSame(lost.names, ['citations']);
  t.end();
});

test('a few citations have their words', (t) => {
  const lost = new LeftOut();
  const writer = new GroundingWriter(true, lost);
  writer.addText('one two');
  writer.addCitation({ start: 4, end: 7, url: 'https://x', title: '' });
  t.match(supportsOf(writer), [{ segment: { startIndex: 4, endIndex: 7, text: 'two' } }]);
  t.strictSame(lost.names, []);
  t.end();
});

test('sources are told of as long as they are not too long together', (t) => {
  const lost = new LeftOut();
  const writer = new GroundingWriter(true, lost);
  writer.addText('one two');
  const long = (number: number) => `https://x/${number}/${'a'.repeat(400 * 1024)}`;
  for (let number = 0; number < 4; number++)
    writer.addCitation({ start: number, end: 7, url: long(number), title: '' });
  writer.addSearch({ kind: 'search', query: 'q'.repeat(512 * 1024), results: [{ url: long(5), title: '' }] });
  writer.addCitation({ start: 4, end: 5, url: long(0), title: '' });
  const { groundingChunks, groundingSupports, webSearchQueries } = JSON.parse(
    `{"":0${writer.text()}}`,
  ).groundingMetadata;
  t.equal(groundingChunks.length, 2);
  t.strictSame(webSearchQueries, []);
  t.match(groundingSupports, [
    { groundingChunkIndices: [0] },
    { groundingChunkIndices: [1] },
    { groundingChunkIndices: [0] },
  ]);
  t.strictSame(lost.names, ['citations']);
  t.end();
});
