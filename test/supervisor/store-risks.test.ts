import { pino } from 'pino';
import { test } from 'tap';
import { tellRisks } from '../../src/supervisor/store-risks.js';
import { eventually } from '../support/eventually.js';

test('what a store may lose is told once, and a safe store is not spoken of', async (t) => {
  const lines: unknown[] = [];
  const log = pino({ base: null }, { write: (text: string) => void lines.push(JSON.parse(text)) });
  t.teardown(tellRisks({ risks: async () => ['fsync is off'] }, log));
  await eventually(() => lines.length === 1);
  t.match(lines[0], { level: 40, risks: ['fsync is off'] });
  let asked = 0;
  const safe = async (): Promise<string[]> => {
    asked += 1;
    return [];
  };
  t.teardown(tellRisks({ risks: safe }, log));
  await eventually(() => asked === 1);
  t.equal(lines.length, 1);
});
