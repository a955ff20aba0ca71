import { CredentialConfigurationBody } from '../domain/issuance/configuration.ts';
import { KEY_USAGES } from '../domain/keys/key-chain.ts';
import { Failure } from '../domain/shared/failure.ts';
import type { TenantId } from '../domain/shared/ids.ts';
import { PresentationConfigurationBody } from '../domain/verification/configuration.ts';
import type { Missing } from './import-all.ts';
import type { ImportDocument } from './import-documents.ts';
import { importTenant } from './import-tenant.ts';
import type { ImportTools } from './import-tools.ts';

const QUERY = { credentials: [{ id: 'any', format: 'dc+sd-jwt', meta: { vct_values: ['any'] } }] };
const CONFIG = { format: 'dc+sd-jwt', display: [{ name: 'Any', locale: 'en' }] };

/**
 * Puts something in the place of a document that was refused, in a rehearsal: what names it would have a second fault
 * only because of the first.
 * @param keys of the tenant.
 * @returns false when nothing names such things, or there is one of the name already.
 */
export async function putStandIn(
  tools: ImportTools,
  missing: Missing,
  keys: readonly ImportDocument<'key-chain'>[],
): Promise<boolean> {
  try {
    return await put(tools, missing, keys);
  } catch (error) {
    if (error instanceof Failure) return false;
    throw error;
  }
}

async function put(
  tools: ImportTools,
  { kind, tenant, id }: Missing,
  keys: readonly ImportDocument<'key-chain'>[],
): Promise<boolean> {
  const tenantId = tenant as TenantId;
  if (kind === 'tenant') {
    const known = await tools.store.forService(({ tenants }) => tenants.find(tenantId));
    if (known !== undefined) return false;
    const body = { id: tenantId, name: tenant };
    await importTenant(tools, { kind, file: '', tenant, id: tenant, body }, keys);
    return true;
  }
  const caller = await tools.callerOf(tenantId);
  if (kind === 'key-chain') {
    await tools.createKeyChain.execute(caller, { id, usages: [...KEY_USAGES] });
    return true;
  }
  const now = tools.ports.clock.now();
  const times = { createdAt: now, updatedAt: now };
  return tools.store.forTenant(
    tenantId,
    async ({ presentationConfigurations, credentialConfigurations }) => {
      if (kind === 'presentation' && (await presentationConfigurations.find(id)) === undefined) {
        const { data } = PresentationConfigurationBody.safeParse({ id, dcql_query: QUERY });
        if (data !== undefined) await presentationConfigurations.put({ ...data, ...times });
        return data !== undefined;
      }
      if (kind === 'credential' && (await credentialConfigurations.find(id)) === undefined) {
        const { data } = CredentialConfigurationBody.safeParse({ id, config: CONFIG, vct: `urn:any:${id}` });
        if (data !== undefined) await credentialConfigurations.put({ ...data, ...times });
        return data !== undefined;
      }
      return false;
    },
    { by: caller },
  );
}
