import { OrmStore } from '../adapters/persistence/orm/orm-store.ts';
import { FIRST_KEY_CHAINS, type FirstKeyChain } from '../application/tenants/create-tenant.ts';
import { mergeSettings } from '../application/tenants/merge-settings.ts';
import { administratorOf, type Tenant } from '../domain/tenants/tenant.ts';
import type { ImportDocument } from './import-documents.ts';
import { importKeyChain } from './import-keys.ts';
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

/**
 * All of it is made in memory first and stored at once: a crash must not leave a tenant that the next start takes for
 * one whose keys somebody deleted.
 */
async function createTenant(
  tools: ImportTools,
  { body, tenant: name }: TenantDocument,
  keys: readonly KeyDocument[],
): Promise<readonly KeyDocument[]> {
  const stage = tools.over(await OrmStore.open({ url: 'sqlite::memory:', poolSize: 2 }, tools.ports.cipher));
  const id = tenantIdOf({ tenant: name });
  const { status = 'active', ...creation } = body;
  const { made, under } = firstKeyChains(name, keys);
  await stage.createTenant.execute(tools.caller, creation, made);
  const refused = await settle<KeyDocument>([...keys, ...under], async (key) => {
    await importKeyChain(stage, key);
  });
  const [failure] = refused.values();
  if (failure !== undefined && !tools.isRehearsal) throw failure;
  const belongings = await stage.store.forTenant(id, async (own) => ({
    tenant: await own.tenant.get(),
    keyChains: await own.keyChains.list(),
    clients: await own.clients.list(),
  }));
  const { tenant, ...rest } = belongings;
  await tools.store.forService(({ tenants }) => tenants.add({ ...tenant, status }, rest), {
    by: tools.caller,
  });
  return keys.filter((key) => !refused.has(key));
}

/**
 * The key chains that a tenant starts with are made where the folder has none of the name. Credentials and their
 * status lists are under one CA, also where that is the folder's.
 * @returns `made` for the use case, `under` as documents.
 */
function firstKeyChains(
  tenant: string,
  keys: readonly KeyDocument[],
): { readonly made: readonly FirstKeyChain[]; readonly under: readonly KeyDocument[] } {
  const missing = FIRST_KEY_CHAINS.filter((first) => keys.every(({ id }) => id !== first.id));
  const authorities = keys.filter(({ body }) => hasAuthority(body)).map(({ id }) => id);
  const isUnder = ({ under }: FirstKeyChain) => under !== undefined && authorities.includes(under);
  return {
    made: missing.filter((first) => !isUnder(first)),
    under: missing.filter(isUnder).map(({ id, usage, under }) => ({
      kind: 'key-chain',
      file: '',
      tenant,
      id,
      body: { id, usages: [usage], rootKeyChainId: under },
    })),
  };
}

function hasAuthority(body: KeyDocument['body']): boolean {
  return 'key' in body ? body.certificates === undefined : body.selfSigned !== true;
}
