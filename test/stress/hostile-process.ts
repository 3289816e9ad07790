import type { Attack, AttackPlan } from './hostile.js';
import { bodyAttack } from './hostile-bodies.js';
import { unfinishedMessages } from './hostile-sockets.js';

// The process of an attacker: starts the attack in its first message, ends it at the next, and reports what happened.

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
