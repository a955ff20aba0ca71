import type { KeyChain } from '../../domain/keys/key-chain.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { Failure } from '../../domain/shared/failure.ts';
import { mergeOrganization, NO_ORGANIZATION } from '../../domain/tenants/organization.ts';
import { administratorOf, type Tenant } from '../../domain/tenants/tenant.ts';
import { endOf } from '../../domain/tenants/tenant-end.ts';
import { withNewKeys } from '../keys/new-keys.ts';
import { assertProvider, makeWantedKeyChain, type WantedKeyChain } from '../keys/wanted-key-chain.ts';
import { FIRST_KEY_CHAINS, makeTenant } from '../tenants/make-tenant.ts';
import { mergeSettings } from '../tenants/own-settings.ts';
import { UpdateTenant } from '../tenants/tenants.ts';
import type { Administration } from './administration.ts';
import type { Document } from './documents.ts';
import { isSame, type Outcome, settle } from './outcome.ts';

type TenantDocument = Document<'tenant'>;
type KeyDocument = Document<'key-chain'>;

export type AppliedTenant = {
  readonly outcome: Outcome;
  /** Key chains that came into being together with the tenant. */
  readonly keys: readonly KeyDocument[];
};

/**
 * Makes a tenant together with its key chains, in one step, or changes one that is there.
 * @param keys of the tenant.
 * @throws Failure of the administrative interface; nothing is stored of a new tenant then.
 */
export async function applyTenant(
  administration: Administration,
  document: Pick<TenantDocument, 'tenant' | 'body'>,
  keys: readonly KeyDocument[],
): Promise<AppliedTenant> {
  const { store } = administration.ports;
  const known = await store.forService(({ tenants }) => tenants.find(document.tenant));
  if (known === undefined) return { outcome: 'created', keys: await createTenant(administration, document, keys) };
  const settings = await changeSettings(administration, document.body, known);
  const roles = await setRoles(administration, document.body, known);
  return { outcome: settings || roles ? 'changed' : 'unchanged', keys: [] };
}

/** @returns whether there was anything to change. */
async function changeSettings({ ports, caller }: Administration, body: TenantDocument['body'], known: Tenant): Promise<boolean> {
  const { clock, eventBus, store } = ports;
  assertProvider(ports.kms, known.id, body.kms ?? undefined, 'kms');
  const wanted = {
    name: body.name,
    description: body.description ?? null,
    status: body.status ?? known.status,
    sessionConfig: mergeSettings(null, body.sessionConfig),
    statusListConfig: mergeSettings(null, body.statusListConfig),
    kms: body.kms ?? null,
    profile: body.profile ?? null,
    endsAt: endOf(body.endsAt ?? null, known.endsAt, clock.now()),
    ...mergeOrganization(NO_ORGANIZATION, body),
  };
  const { name, description, status, sessionConfig, statusListConfig, kms, profile, endsAt } = known;
  const present = {
    name,
    description,
    status,
    sessionConfig,
    statusListConfig,
    kms,
    profile,
    endsAt,
    ...mergeOrganization(known, {}),
  };
  if (isSame(present, wanted)) return false;
  const changed = { ...known, ...wanted, updatedAt: clock.now() };
  await store.forTenant(known.id, ({ tenant }) => tenant.save(changed), { by: caller });
  eventBus.publish({ type: 'tenant', tenantId: known.id });
  return true;
}

/** @returns whether the administrator had other roles, or there was none. */
async function setRoles({ ports, caller }: Administration, { roles = [] }: TenantDocument['body'], { id }: Tenant): Promise<boolean> {
  if (roles.length === 0) return false;
  const clients = await ports.store.forService(({ clients }) => clients.listOf(id));
  const administrator = clients.find(({ clientId }) => clientId === administratorOf(id));
  if (administrator !== undefined && isSame(administrator.roles, [...new Set(roles)])) return false;
  await new UpdateTenant(ports).execute(caller, id, { roles });
  return true;
}

/** All of it is stored at once: a crash must not leave a tenant that the next start takes for one without keys. */
async function createTenant(
  { ports, caller, isDryRun }: Administration,
  { body: { status = 'active', ...creation } }: Pick<TenantDocument, 'body'>,
  keys: readonly KeyDocument[],
): Promise<readonly KeyDocument[]> {
  return withNewKeys(ports, async (own) => {
    let refused: ReadonlyMap<object, Failure> = new Map();
    const made = await makeTenant(own, creation, async (tenant) => {
      const chains: KeyChain[] = [];
      const wanted: { readonly body: WantedKeyChain }[] = [...firstKeyChains(keys), ...keys];
      refused = await settle(wanted, async (each) => {
        chains.push(await makeWantedKeyChain(own, { tenant, chains }, each.body));
      });
      return chains;
    });
    const [failure] = refused.values();
    if (failure !== undefined && !isDryRun) throw failure;
    const { keyChains, clients } = made;
    const tenant = { ...made.tenant, status };
    await own.store.forService(({ tenants }) => tenants.add(tenant, { keyChains, clients }), { by: caller });
    return keys.filter((key) => !refused.has(key));
  });
}

/**
 * The key chains that a tenant starts with are made where the folder has none of the name. Credentials and their
 * status lists are under one CA, also where that is the folder's.
 */
function firstKeyChains(keys: readonly KeyDocument[]): { readonly body: WantedKeyChain }[] {
  const missing = FIRST_KEY_CHAINS.filter((first) => keys.every(({ id }) => id !== first.id));
  const isWithoutAuthority = (rootId: string | undefined) => keys.some(({ id, body }) => id === rootId && !hasAuthority(body));
  return missing.map(({ rootKeyChainId, ...body }) => ({
    body: isWithoutAuthority(rootKeyChainId) ? body : { ...body, ...defined({ rootKeyChainId }) },
  }));
}

function hasAuthority(body: KeyDocument['body']): boolean {
  return 'key' in body ? body.certificates === undefined : body.selfSigned !== true;
}
