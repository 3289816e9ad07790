import type { Attack, AttackPlan } from './hostile.js';
import { bodyAttack } from './hostile-bodies.js';
import { unfinishedMessages } from './hostile-sockets.js';

// The process of an attacker: begins what its first message says, ends it at the next, and answers with what it met.

function attackOf(plan: AttackPlan): Attack {
  return plan.kind === 'bodies' ? bodyAttack : unfinishedMessages(plan);
}

process.once('message', async (message) => {
  const { port, plan } = message as { readonly port: number; readonly plan: AttackPlan };
  const attack = await attackOf(plan)(port);
  process.once('message', async () => {
    process.send?.(await attack.stop(), () => process.disconnect());
  });
});
