import type { KeyChain } from '../../domain/keys/key-chain.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { Failure } from '../../domain/shared/failure.ts';
import { mergeOrganization, NO_ORGANIZATION } from '../../domain/tenants/organization.ts';
import { administratorOf, type Tenant } from '../../domain/tenants/tenant.ts';
import { tenantEnd } from '../../domain/tenants/tenant-end.ts';
import { assertProvider, createRequestedKeyChain, type KeyChainRequest } from '../keys/create-requested-key-chain.ts';
import { withNewKeys } from '../keys/new-keys.ts';
import { createTenant, FIRST_KEY_CHAINS } from '../tenants/create-tenant.ts';
import { mergeSettings } from '../tenants/tenant-settings.ts';
import { UpdateTenant } from '../tenants/tenants.ts';
import type { Administration } from './administration.ts';
import type { Document } from './documents.ts';
import { isSame, type Outcome, processWithRetries } from './outcome.ts';

type TenantDocument = Document<'tenant'>;
type KeyDocument = Document<'key-chain'>;

export type AppliedTenant = {
  readonly outcome: Outcome;
  /** Key chains that were created together with the tenant. */
  readonly keys: readonly KeyDocument[];
};

/**
 * Creates a tenant together with its key chains in one step, or updates an existing one.
 * @param keys of the tenant.
 * @throws Failure of the administrative interface; nothing is stored of a new tenant then.
 */
export async function applyTenant(
  administration: Administration,
  document: Pick<TenantDocument, 'tenant' | 'body'>,
  keys: readonly KeyDocument[],
): Promise<AppliedTenant> {
  const { store } = administration.ports;
  const storedTenant = await store.forService(({ tenants }) => tenants.find(document.tenant));
  if (storedTenant === undefined) return { outcome: 'created', keys: await createTenantFromDocument(administration, document, keys) };
  const settings = await changeSettings(administration, document.body, storedTenant);
  const roles = await setRoles(administration, document.body, storedTenant);
  return { outcome: settings || roles ? 'changed' : 'unchanged', keys: [] };
}

/** @returns true if something was changed. */
async function changeSettings({ ports, caller }: Administration, body: TenantDocument['body'], storedTenant: Tenant): Promise<boolean> {
  const { clock, eventBus, store } = ports;
  assertProvider(ports.kms, storedTenant.id, body.kms ?? undefined, 'kms');
  const documentSettings = {
    name: body.name,
    description: body.description ?? null,
    status: body.status ?? storedTenant.status,
    sessionConfig: mergeSettings(null, body.sessionConfig),
    statusListConfig: mergeSettings(null, body.statusListConfig),
    kms: body.kms ?? null,
    profile: body.profile ?? null,
    endsAt: tenantEnd(body.endsAt ?? null, storedTenant.endsAt, clock.now()),
    ...mergeOrganization(NO_ORGANIZATION, body),
  };
  const { name, description, status, sessionConfig, statusListConfig, kms, profile, endsAt } = storedTenant;
  const currentSettings = {
    name,
    description,
    status,
    sessionConfig,
    statusListConfig,
    kms,
    profile,
    endsAt,
    ...mergeOrganization(storedTenant, {}),
  };
  if (isSame(currentSettings, documentSettings)) return false;
  const updatedTenant = { ...storedTenant, ...documentSettings, updatedAt: clock.now() };
  await store.forTenant(storedTenant.id, ({ tenant }) => tenant.save(updatedTenant), { by: caller });
  eventBus.publish({ type: 'tenant', tenantId: storedTenant.id });
  return true;
}

/** @returns true if the administrator had other roles, or there was none. */
async function setRoles({ ports, caller }: Administration, { roles = [] }: TenantDocument['body'], { id }: Tenant): Promise<boolean> {
  if (roles.length === 0) return false;
  const clients = await ports.store.forService(({ clients }) => clients.listOf(id));
  const administrator = clients.find(({ clientId }) => clientId === administratorOf(id));
  if (administrator !== undefined && isSame(administrator.roles, [...new Set(roles)])) return false;
  await new UpdateTenant(ports).execute(caller, id, { roles });
  return true;
}

/** Stores everything in one transaction: a crash must not leave a tenant without keys. */
async function createTenantFromDocument(
  { ports, caller, isDryRun }: Administration,
  { body: { status = 'active', ...creation } }: Pick<TenantDocument, 'body'>,
  keys: readonly KeyDocument[],
): Promise<readonly KeyDocument[]> {
  return withNewKeys(ports, async (trackedPorts) => {
    let failures: ReadonlyMap<object, Failure> = new Map();
    const createdTenant = await createTenant(trackedPorts, creation, async (tenant) => {
      const chains: KeyChain[] = [];
      const requests: { readonly body: KeyChainRequest }[] = [...firstKeyChains(keys), ...keys];
      failures = await processWithRetries(requests, async (request) => {
        chains.push(await createRequestedKeyChain(trackedPorts, { tenant, chains }, request.body));
      });
      return chains;
    });
    const [failure] = failures.values();
    if (failure !== undefined && !isDryRun) throw failure;
    const { keyChains, clients } = createdTenant;
    const tenant = { ...createdTenant.tenant, status };
    await trackedPorts.store.forService(({ tenants }) => tenants.add(tenant, { keyChains, clients }), { by: caller });
    return keys.filter((key) => !failures.has(key));
  });
}

/**
 * The initial key chains that the folder does not contain. Credentials and their
 * status lists are under one CA, also if that is from the folder.
 */
function firstKeyChains(keys: readonly KeyDocument[]): { readonly body: KeyChainRequest }[] {
  const missingChains = FIRST_KEY_CHAINS.filter((initialChain) => keys.every(({ id }) => id !== initialChain.id));
  const isWithoutAuthority = (rootId: string | undefined) => keys.some(({ id, body }) => id === rootId && !hasAuthority(body));
  return missingChains.map(({ rootKeyChainId, ...body }) => ({
    body: isWithoutAuthority(rootKeyChainId) ? body : { ...body, ...defined({ rootKeyChainId }) },
  }));
}

function hasAuthority(body: KeyDocument['body']): boolean {
  return 'key' in body ? body.certificates === undefined : body.selfSigned !== true;
}
