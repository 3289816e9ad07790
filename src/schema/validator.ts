import { createRequire } from 'node:module';
import type { Static, TSchema } from 'typebox';
import type { Validator } from 'typebox/schema';

type Compiler = Pick<typeof import('typebox/schema'), 'Compile'>;

const require = createRequire(import.meta.url);
let compiler: Compiler | null = null;

/**
 * Compiles a TypeBox schema to a check. Unless `useCompiler` was called, the compiler is loaded by the first call: it is
 * many files, which would take a third of a process's start, and most processes get by for long without it.
 */
export function compileValidator<Schema extends TSchema>(schema: Schema): Validator<Schema, Static<Schema>> {
  compiler ??= require('typebox/schema') as Compiler;
  return compiler.Compile(schema);
}

/**
 * Takes the compiler from a process that has it from its start, so that the first call of `compileValidator` need not
 * stop the process for a tenth of a second.
 */
export function useCompiler(loaded: Compiler): void {
  compiler = loaded;
}
