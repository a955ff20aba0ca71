import { isDeepStrictEqual } from 'node:util';
import { type CompiledQuery, compileQuery } from '../../domain/dcql/compile.ts';
import type { DcqlQuery } from '../../domain/dcql/query.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { getOrCreate } from '../tenant-cache/get-or-create.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** Compiled queries by the query object of a configuration, which lives as long as the cached configuration. */
const compiled = new WeakMap<object, CompiledQuery>();

/**
 * The compiled query of a request. That of a configuration is compiled once; a request that was created before its configuration
 * changed keeps its own query.
 */
export async function compiledQuery(
  tenant: TenantConfiguration,
  configurationId: string | undefined,
  requestedQuery: JsonObject,
): Promise<CompiledQuery> {
  const query = configurationId === undefined ? undefined : (await tenant.presentationConfiguration(configurationId))?.dcql_query;
  if (query === undefined || !isDeepStrictEqual(query, requestedQuery)) return compileQuery(requestedQuery as unknown as DcqlQuery);
  return getOrCreate(compiled, query, () => compileQuery(query));
}
