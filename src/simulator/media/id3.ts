const headerSize = 10;
const utf8 = 3;
const frameType = 'COMM';

/** An ID3v2.4 tag whose only frame is a comment in UTF-8, without a language that is known or a description. */
export function commentTag(text: string): Buffer {
  const content = Buffer.concat([Buffer.from([utf8]), Buffer.from('und\0'), Buffer.from(text)]);
  const frame = Buffer.concat([Buffer.from(frameType), synchsafe(content.length), Buffer.alloc(2), content]);
  return Buffer.concat([Buffer.from('ID3\x04\0\0'), synchsafe(frame.length), frame]);
}

/** Where the ID3v2 tag at the start ends, 0 where there is none, and its first UTF-8 comment of version 2.4. */
export function readTag(bytes: Buffer): { end: number; text: string | null } {
  if (bytes.length < headerSize || bytes.toString('latin1', 0, 3) !== 'ID3') {
    return { end: 0, text: null };
  }
  const end = headerSize + fromSynchsafe(bytes, 6);
  const tag = bytes.subarray(0, end);
  for (let at = headerSize; tag[3] === 4 && at + headerSize <= tag.length; ) {
    const size = fromSynchsafe(tag, at + 4);
    const content = tag.subarray(at + headerSize, at + headerSize + size);
    if (tag.toString('latin1', at, at + 4) === frameType && content[0] === utf8) {
      const described = content.indexOf(0, 4);
      if (described >= 0) {
        return { end, text: content.toString('utf8', described + 1) };
      }
    }
    at += headerSize + size;
  }
  return { end, text: null };
}

/** Four bytes of seven bits each. */
function synchsafe(size: number): Buffer {
  return Buffer.from([size >> 21, size >> 14, size >> 7, size].map((byte) => byte & 0x7f));
}

function fromSynchsafe(bytes: Buffer, at: number): number {
  let size = 0;
  for (const byte of bytes.subarray(at, at + 4)) {
    size = (size << 7) | (byte & 0x7f);
  }
  return size;
}
