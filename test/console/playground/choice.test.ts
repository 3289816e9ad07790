import { test } from 'tap';
import { protocolsOf } from '../../../src/console/playground/choice.js';
import type { TextProtocol } from '../../../src/console/playground/text-request.js';
import { textProtocols } from '../../../src/conversation/request.js';

// The compiler names this line if the gateway has a text protocol that the page's type lacks.
const known: readonly TextProtocol[] = textProtocols;

test('the playground has every text protocol of the gateway', async (t) => {
  t.strictSame(
    protocolsOf.chat.map(({ name }) => name),
    known,
  );
});
