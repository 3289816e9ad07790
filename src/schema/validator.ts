import { createRequire } from 'node:module';
import type { Static, TSchema } from 'typebox';
import type { Validator } from 'typebox/schema';

type Compiler = Pick<typeof import('typebox/schema'), 'Compile'>;

const require = createRequire(import.meta.url);
let compiler: Compiler | null = null;

/**
 * Compiles a TypeBox schema to a check. Unless `useCompiler` was called, the first call loads the compiler: its many
 * files would take a third of a process's start, and most processes do not need it for a long time.
 */
export function compileValidator<Schema extends TSchema>(schema: Schema): Validator<Schema, Static<Schema>> {
  compiler ??= require('typebox/schema') as Compiler;
  return compiler.Compile(schema);
}

/**
 * Sets a compiler that the process loaded at its start, so that the first call of `compileValidator` does not block the
 * process for a tenth of a second.
 */
export function useCompiler(loaded: Compiler): void {
  compiler = loaded;
}
