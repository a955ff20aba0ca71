import { isDeepStrictEqual } from 'node:util';
import type { JsonObject } from '../../domain/shared/json.ts';
import { type CompiledQuery, compileQuery } from '../../domain/verification/dcql/compile.ts';
import type { DcqlQuery } from '../../domain/verification/dcql/query.ts';
import type { TenantView } from '../tenant-configuration.ts';

/** By the query of a configuration, which lives as long as the tenant's view. */
const compiled = new WeakMap<object, CompiledQuery>();

/**
 * The query of a request, ready to hold answers against. That of a configuration is compiled once; a request that was
 * made before its configuration changed keeps its own.
 */
export async function compiledQuery(
  view: TenantView,
  configurationId: string | undefined,
  requested: JsonObject,
): Promise<CompiledQuery> {
  const configured =
    configurationId === undefined
      ? undefined
      : (await view.presentationConfiguration(configurationId))?.dcql_query;
  if (configured === undefined || !isDeepStrictEqual(configured, requested)) {
    return compileQuery(requested as unknown as DcqlQuery);
  }
  const known = compiled.get(configured) ?? compileQuery(configured);
  compiled.set(configured, known);
  return known;
}
