import type { RawTextFrame, ReplyContext, StreamEncoder } from '../../conversation/codec.js';
import type { StreamEvent } from '../../conversation/events.js';
import { framed } from '../../conversation/raw-text.js';
import type { Usage } from '../../conversation/usage.js';
import { anthropic } from '../../dialects/anthropic.js';
import { replyCallId } from './call-ids.js';
import { encodeFinish } from './finish.js';
import { messageHead } from './reply-encode.js';
import { encodeUsage } from './usage.js';

type Block = 'text' | 'thinking' | 'call';
type Finish = Extract<StreamEvent, { kind: 'finish' }>;

const emptyBlocks = {
  text: '{"type":"text","text":""}',
  thinking: '{"type":"thinking","thinking":"","signature":""}',
} as const;

/**
 * Writes a messages stream; see `StreamEncoder`. One block is open at a time. Why the answer ended is told with the
 * usage, when all of it is known. Of several answers the first is written; citations have no place.
 */
export function createEncoder(context: ReplyContext): StreamEncoder {
  let isStarted = false;
  let usage: Usage | null = null;
  let finish: Finish | null = null;
  let calls = 0;
  let open: Block | null = null;
  /** A signature that came behind text: worth a block of its own only when more than the answer's end follows it. */
  let late: string | null = null;
  /** Of the open block or, without one, of the next. */
  let index = 0;
  /** Around the raw texts of the open block. */
  let frame: RawTextFrame | null = null;

  function start(): string {
    if (isStarted) return '';
    isStarted = true;
    const message = `{${messageHead(context)},"content":[],"stop_reason":null,"stop_sequence":null,"usage":${encodeUsage(usage)}}`;
    return `event: message_start\ndata: {"type":"message_start","message":${message}}\n\n${anthropic.keepAlive}`;
  }

  function closeBlock(): string {
    if (open === null) return '';
    open = null;
    frame = null;
    return `event: content_block_stop\ndata: {"type":"content_block_stop","index":${index++}}\n\n`;
  }

  function openBlock(block: Block, content: string): string {
    const before = start() + closeBlock();
    open = block;
    return `${before}event: content_block_start\ndata: {"type":"content_block_start","index":${index},"content_block":${content}}\n\n`;
  }

  /** @param block the one that is open, or is to be opened */
  function need(block: 'text' | 'thinking'): string {
    return open === block ? '' : openBlock(block, emptyBlocks[block]);
  }

  function delta(type: string, member: string, value: string): string {
    return `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":"${type}","${member}":${JSON.stringify(value)}}}\n\n`;
  }

  function sign(): string {
    if (late === null) return '';
    const signature = late;
    late = null;
    return need('thinking') + delta('signature_delta', 'signature', signature) + closeBlock();
  }

  function callStart(id: string, name: string): string {
    const ids = `"id":${JSON.stringify(replyCallId(id, context, calls++))},"name":${JSON.stringify(name)}`;
    return openBlock('call', `{"type":"tool_use",${ids},"input":{}}`);
  }

  function end(): string {
    const { reason = 'other', stopSequence = null } = finish ?? {};
    const sequence = reason === 'stopSequence' ? stopSequence : null;
    const stop = `{"stop_reason":"${encodeFinish(reason, calls > 0)}","stop_sequence":${JSON.stringify(sequence)}}`;
    return (
      `${start()}${closeBlock()}` +
      `event: message_delta\ndata: {"type":"message_delta","delta":${stop},"usage":${encodeUsage(usage)}}\n\n` +
      'event: message_stop\ndata: {"type":"message_stop"}\n\n'
    );
  }

  return {
    error: null,
    takesRawText: () => open === 'text' && late === null,
    encodeRawText(raw) {
      if (open !== 'text' || late !== null) return null;
      frame ??= framed(
        `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":"text_delta","text":"`,
        '"}}\n\n',
      );
      return frame.before + raw + frame.after;
    },
    rawTextFrame: () => frame,
    encode(event) {
      if ('choice' in event && event.choice !== 0) return '';
      switch (event.kind) {
        case 'start':
          usage = event.usage;
          return start();
        case 'text':
        case 'refusal':
          return event.text === '' ? '' : sign() + need('text') + delta('text_delta', 'text', event.text);
        case 'reasoning':
          if (!context.showReasoning || event.text === '') return '';
          return sign() + need('thinking') + delta('thinking_delta', 'thinking', event.text);
        case 'signature': {
          const before = sign();
          late = event.signature;
          return open === 'text' ? before : before + sign();
        }
        case 'callStart':
          return sign() + callStart(event.id, event.name);
        case 'callArguments':
          return open === 'call' && event.text !== ''
            ? delta('input_json_delta', 'partial_json', event.text)
            : '';
        case 'callEnd':
          return open === 'call' ? closeBlock() : '';
        case 'finish':
          finish = event;
          return closeBlock();
        case 'usage':
          usage = event.usage;
          return '';
        case 'citation':
          return '';
        case 'error':
          return anthropic.errorEvent(event.error, `req_${context.id}`);
        case 'end':
          return end();
      }
    },
  };
}
