import { isDeepStrictEqual } from 'node:util';
import { type CompiledQuery, compileQuery } from '../../domain/dcql/compile.ts';
import type { DcqlQuery } from '../../domain/dcql/query.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { madeOnce } from '../tenant-cache/made-once.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** By the query of a configuration, which lives as long as the tenant's view. */
const compiled = new WeakMap<object, CompiledQuery>();

/**
 * The query of a request, ready to hold answers against. That of a configuration is compiled once; a request that was
 * made before its configuration changed keeps its own.
 */
export async function compiledQuery(
  configured: TenantConfiguration,
  configurationId: string | undefined,
  requested: JsonObject,
): Promise<CompiledQuery> {
  const query = configurationId === undefined ? undefined : (await configured.presentationConfiguration(configurationId))?.dcql_query;
  if (query === undefined || !isDeepStrictEqual(query, requested)) return compileQuery(requested as unknown as DcqlQuery);
  return madeOnce(compiled, query, () => compileQuery(query));
}
