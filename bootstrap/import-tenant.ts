import { makeWantedKeyChain, type WantedKeyChain } from '../application/keys/wanted-key-chain.ts';
import { FIRST_KEY_CHAINS, makeTenant } from '../application/tenants/make-tenant.ts';
import { mergeSettings } from '../application/tenants/merge-settings.ts';
import type { KeyChain } from '../domain/keys/key-chain.ts';
import { defined } from '../domain/shared/defined.ts';
import type { Failure } from '../domain/shared/failure.ts';
import { administratorOf, type Tenant } from '../domain/tenants/tenant.ts';
import type { ImportDocument } from './import-documents.ts';
import { isSame, type Outcome, settle, tenantIdOf } from './import-outcome.ts';
import type { ImportTools } from './import-tools.ts';

type TenantDocument = ImportDocument<'tenant'>;
type KeyDocument = ImportDocument<'key-chain'>;

export type ImportedTenant = {
  readonly outcome: Outcome;
  /** Key chains that came into being together with the tenant. */
  readonly keys: readonly KeyDocument[];
};

/**
 * Makes a tenant together with its key chains, in one step, or changes one that is there.
 * @param keys of the tenant.
 * @throws Failure of the administrative interface; nothing is stored of a new tenant then.
 */
export async function importTenant(
  tools: ImportTools,
  document: TenantDocument,
  keys: readonly KeyDocument[],
): Promise<ImportedTenant> {
  const id = tenantIdOf(document);
  const known = await tools.store.forService(({ tenants }) => tenants.find(id));
  if (known === undefined) return { outcome: 'created', keys: await createTenant(tools, document, keys) };
  const settings = await changeSettings(tools, document, known);
  const roles = await setRoles(tools, document);
  return { outcome: settings || roles ? 'changed' : 'unchanged', keys: [] };
}

/** @returns whether there was anything to change. */
async function changeSettings(tools: ImportTools, { body }: TenantDocument, known: Tenant): Promise<boolean> {
  const { clock, eventBus, store } = tools.ports;
  const wanted = {
    name: body.name,
    description: body.description ?? null,
    status: body.status ?? known.status,
    sessionConfig: mergeSettings(null, body.sessionConfig),
    statusListConfig: mergeSettings(null, body.statusListConfig),
  };
  const { name, description, status, sessionConfig, statusListConfig } = known;
  if (isSame({ name, description, status, sessionConfig, statusListConfig }, wanted)) return false;
  await store.forTenant(
    known.id,
    ({ tenant }) => tenant.save({ ...known, ...wanted, updatedAt: clock.now() }),
    { by: tools.caller },
  );
  eventBus.publish({ type: 'tenant', tenantId: known.id });
  return true;
}

/** @returns whether the administrator had other roles, or there was none. */
async function setRoles(tools: ImportTools, document: TenantDocument): Promise<boolean> {
  const { roles = [] } = document.body;
  if (roles.length === 0) return false;
  const id = tenantIdOf(document);
  const clients = await tools.store.forService(({ clients }) => clients.listOf(id));
  const administrator = clients.find(({ clientId }) => clientId === administratorOf(id));
  if (administrator !== undefined && isSame(administrator.roles, [...new Set(roles)])) return false;
  await tools.updateTenant.execute(tools.caller, id, { roles });
  return true;
}

/** All of it is stored at once: a crash must not leave a tenant that the next start takes for one without keys. */
async function createTenant(
  tools: ImportTools,
  { body }: TenantDocument,
  keys: readonly KeyDocument[],
): Promise<readonly KeyDocument[]> {
  const { status = 'active', ...creation } = body;
  const { making } = tools;
  let refused: ReadonlyMap<object, Failure> = new Map();
  const { tenant, clients, keyChains } = await makeTenant(
    making,
    creation,
    async ({ id: tenantId, name }) => {
      const chains: KeyChain[] = [];
      const wanted: { readonly body: WantedKeyChain }[] = [...firstKeyChains(keys), ...keys];
      refused = await settle(wanted, async (each) => {
        chains.push(await makeWantedKeyChain(making, { tenantId, name, chains }, each.body));
      });
      return chains;
    },
  );
  const [failure] = refused.values();
  if (failure !== undefined && !tools.isRehearsal) throw failure;
  await tools.store.forService(({ tenants }) => tenants.add({ ...tenant, status }, { keyChains, clients }), {
    by: tools.caller,
  });
  return keys.filter((key) => !refused.has(key));
}

/**
 * The key chains that a tenant starts with are made where the folder has none of the name. Credentials and their
 * status lists are under one CA, also where that is the folder's.
 */
function firstKeyChains(keys: readonly KeyDocument[]): { readonly body: WantedKeyChain }[] {
  const missing = FIRST_KEY_CHAINS.filter((first) => keys.every(({ id }) => id !== first.id));
  const isWithoutAuthority = (rootId: string | undefined) =>
    keys.some(({ id, body }) => id === rootId && !hasAuthority(body));
  return missing.map(({ rootKeyChainId, ...body }) => ({
    body: isWithoutAuthority(rootKeyChainId) ? body : { ...body, ...defined({ rootKeyChainId }) },
  }));
}

function hasAuthority(body: KeyDocument['body']): boolean {
  return 'key' in body ? body.certificates === undefined : body.selfSigned !== true;
}
