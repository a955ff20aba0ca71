import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

const VARIABLE = 'NODE_COMPILE_CACHE';

/**
 * Caches compiled sources for this process and those that inherit its environment, since a short command mostly compiles.
 * Not while coverage is measured, which would be less precise.
 */
export function useCompileCache(): void {
  if (process.env['NODE_V8_COVERAGE'] !== undefined) return;
  process.env[VARIABLE] ??= fileURLToPath(new URL('../../node_modules/.cache/vidimus', import.meta.url));
  enableCompileCache(process.env[VARIABLE]);
}

/** The variables that a process of the service needs; no other variable of this environment reaches it. */
export function minimalEnvironment(): Readonly<Record<string, string | undefined>> {
  const { PATH, NODE_OPTIONS } = process.env;
  return { PATH, NODE_OPTIONS, [VARIABLE]: process.env[VARIABLE] };
}
