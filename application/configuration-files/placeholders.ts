import { CredentialConfigurationBody } from '../../domain/issuance/configuration.ts';
import { KEY_USAGES } from '../../domain/keys/key-chain.ts';
import { type FileKind, resourceOf } from '../../domain/resources.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { PresentationConfigurationBody } from '../../domain/verification/configuration.ts';
import { CreateKeyChain } from '../keys/key-chains.ts';
import type { DocumentRepositories } from '../ports/repositories.ts';
import type { Administration } from './administration.ts';
import { applyTenant } from './apply-tenant.ts';
import type { Described, Document } from './documents.ts';

const QUERY = { credentials: [{ id: 'any', format: 'dc+sd-jwt', meta: { vct_values: ['any'] } }] };
const CONFIG = { format: 'dc+sd-jwt', display: [{ name: 'Any', locale: 'en' }] };

/** Documents that mean nothing, of kinds that others name. Without data when the id is none. */
const ANY: Partial<Readonly<Record<FileKind, (id: string) => { readonly data?: object | undefined }>>> = {
  'presentation-configuration': (id) => PresentationConfigurationBody.safeParse({ id, dcql_query: QUERY }),
  'credential-configuration': (id) => CredentialConfigurationBody.safeParse({ id, config: CONFIG, vct: `urn:any:${id}` }),
};

/**
 * Puts something in the place of a document that was refused, in a dry run: what names it would have a second fault
 * only because of the first.
 * @param keys of the tenant.
 * @returns false when nothing names such things, or there is one of the name already.
 */
export async function putPlaceholder(
  administration: Administration,
  missing: Described,
  keys: readonly Document<'key-chain'>[],
): Promise<boolean> {
  try {
    return await put(administration, missing, keys);
  } catch (error) {
    if (error instanceof Failure) return false;
    throw error;
  }
}

async function put(
  administration: Administration,
  { kind, tenant, id }: Described,
  keys: readonly Document<'key-chain'>[],
): Promise<boolean> {
  const { ports } = administration;
  if (kind === 'tenant') {
    const known = await ports.store.forService(({ tenants }) => tenants.find(tenant));
    if (known !== undefined) return false;
    await applyTenant(administration, { tenant, body: { id: tenant, name: tenant } }, keys);
    return true;
  }
  const caller = await administration.callerOf(tenant);
  if (kind === 'key-chain') {
    await new CreateKeyChain(ports).execute(caller, { id, usages: [...KEY_USAGES] });
    return true;
  }
  const { data } = ANY[kind]?.(id) ?? {};
  if (data === undefined) return false;
  const now = ports.clock.now();
  return ports.store.forTenant(
    tenant,
    async (own) => {
      const repository = own[resourceOf(kind).repository as keyof DocumentRepositories];
      if ((await repository.find(id)) !== undefined) return false;
      await repository.put({ ...data, createdAt: now, updatedAt: now } as never);
      return true;
    },
    { by: caller },
  );
}
