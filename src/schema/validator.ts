import { createRequire } from 'node:module';
import type { TSchema } from 'typebox';
import type { Validator } from 'typebox/compile';

const require = createRequire(import.meta.url);

/**
 * Compiles a TypeBox schema to a check. The compiler is loaded by the first call: it is several hundred files, which
 * would take a third of a process's start, and most processes get by for long without it.
 */
export function compileValidator<Schema extends TSchema>(
  schema: Schema,
): Validator<Record<never, never>, Schema> {
  const { Compile } = require('typebox/compile') as typeof import('typebox/compile');
  return Compile(schema);
}

/**
 * Loads the compiler, so that the first call of `compileValidator` need not stop the process for a tenth of a second.
 * It has to be all at once: Node cannot `require` a module while an `import` of it is under way.
 */
export function loadCompiler(): void {
  require('typebox/compile');
}
