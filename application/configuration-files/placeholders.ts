import { CredentialConfigurationBody } from '../../domain/issuance/configuration.ts';
import { KEY_USAGES } from '../../domain/keys/key-chain.ts';
import { type FileKind, resourceOf } from '../../domain/resources.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { PresentationConfigurationBody } from '../../domain/verification/configuration.ts';
import { CreateKeyChain } from '../keys/key-chains.ts';
import type { DocumentRepositories } from '../ports/repositories.ts';
import type { Administration } from './administration.ts';
import { applyTenant } from './apply-tenant.ts';
import type { Document, DocumentIdentity } from './documents.ts';

const QUERY = { credentials: [{ id: 'any', format: 'dc+sd-jwt', meta: { vct_values: ['any'] } }] };
const CONFIG = { format: 'dc+sd-jwt', display: [{ name: 'Any', locale: 'en' }] };

/** Minimal documents of kinds that others refer to; `data` is undefined for an invalid id. */
const MINIMAL_DOCUMENTS: Partial<Readonly<Record<FileKind, (id: string) => { readonly data?: object | undefined }>>> = {
  'presentation-configuration': (id) => PresentationConfigurationBody.safeParse({ id, dcql_query: QUERY }),
  'credential-configuration': (id) => CredentialConfigurationBody.safeParse({ id, config: CONFIG, vct: `urn:any:${id}` }),
};

/**
 * Stores a placeholder for a rejected document in a dry run, so that documents that refer to it have no second fault for the same
 * reason.
 * @param keys of the tenant.
 * @returns false when nothing refers to its kind, or the id exists already.
 */
export async function putPlaceholder(
  administration: Administration,
  document: DocumentIdentity,
  keys: readonly Document<'key-chain'>[],
): Promise<boolean> {
  try {
    return await storePlaceholder(administration, document, keys);
  } catch (error) {
    if (error instanceof Failure) return false;
    throw error;
  }
}

async function storePlaceholder(
  administration: Administration,
  { kind, tenant, id }: DocumentIdentity,
  keys: readonly Document<'key-chain'>[],
): Promise<boolean> {
  const { ports } = administration;
  if (kind === 'tenant') {
    const storedTenant = await ports.store.forService(({ tenants }) => tenants.find(tenant));
    if (storedTenant !== undefined) return false;
    await applyTenant(administration, { tenant, body: { id: tenant, name: tenant } }, keys);
    return true;
  }
  const caller = await administration.callerOf(tenant);
  if (kind === 'key-chain') {
    await new CreateKeyChain(ports).execute(caller, { id, usages: [...KEY_USAGES] });
    return true;
  }
  const { data } = MINIMAL_DOCUMENTS[kind]?.(id) ?? {};
  if (data === undefined) return false;
  const now = ports.clock.now();
  return ports.store.forTenant(
    tenant,
    async (repositories) => {
      const repository = repositories[resourceOf(kind).repository as keyof DocumentRepositories];
      if ((await repository.find(id)) !== undefined) return false;
      await repository.put({ ...data, createdAt: now, updatedAt: now } as never);
      return true;
    },
    { by: caller },
  );
}
