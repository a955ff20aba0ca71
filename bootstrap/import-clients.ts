import type { TenantCaller } from '../application/caller.ts';
import type { FolderFault } from '../config/import/folder-document.ts';
import type { ImportDocument } from './import-documents.ts';
import { isSame, type Outcome, tenantIdOf } from './import-outcome.ts';
import type { ImportTools } from './import-tools.ts';

/** Makes a client, or gives one the rights and the secret that the document says. */
export async function importClient(tools: ImportTools, document: ImportDocument<'client'>): Promise<Outcome> {
  const { id, body } = document;
  const { secret, roles, description = null } = body;
  const { allowedPresentationConfigs = null, allowedIssuanceConfigs = null } = body;
  const caller = await tools.callerOf(tenantIdOf(document));
  const known = await caller.configured.client(id);
  if (known === undefined) {
    await tools.createClient.execute(caller, body);
    return 'created';
  }
  const rights = {
    roles: [...new Set(roles)],
    description,
    allowedPresentationConfigs,
    allowedIssuanceConfigs,
  };
  const hasRights = isSame(pick(known, rights), rights);
  const hasSecret = secret === undefined || (await tools.ports.secrets.verify(secret, known.secretHash));
  if (!hasRights) await tools.updateClient.execute(caller, id, rights);
  if (secret !== undefined && !hasSecret) await replaceSecret(tools, caller, id, secret);
  return hasRights && hasSecret ? 'unchanged' : 'changed';
}

function pick<T extends object>(from: T, like: object): Partial<T> {
  return Object.fromEntries(Object.entries(from).filter(([name]) => name in like)) as Partial<T>;
}

/**
 * Configurations that a client is restricted to and that there are none of. That is allowed: the client gets nothing by
 * them, until somebody makes them.
 */
export async function missingConfigurations(
  tools: ImportTools,
  { file, tenant, body }: ImportDocument<'client'>,
): Promise<FolderFault[]> {
  const { configured } = await tools.callerOf(tenantIdOf({ tenant }));
  const known = {
    allowedPresentationConfigs: await configured.presentationConfigurations(),
    allowedIssuanceConfigs: await configured.credentialConfigurations(),
  };
  return Object.entries(known).flatMap(([member, configurations]) => {
    const ids = new Set(configurations.map(({ id }) => id));
    const wanted = body[member as keyof typeof known] ?? [];
    return wanted.flatMap((id, index): FolderFault[] => {
      const message = `there is no configuration "${id}" yet, so this allows nothing`;
      return ids.has(id) ? [] : [{ file, path: `${member}.${index}`, message }];
    });
  });
}

async function replaceSecret(
  { ports }: ImportTools,
  caller: TenantCaller,
  clientId: string,
  secret: string,
): Promise<void> {
  const { store, secrets, clock } = ports;
  const secretHash = await secrets.hash(secret);
  await store.forTenant(
    caller.tenantId,
    async ({ clients }) => {
      const client = await clients.get(clientId);
      await clients.save({ ...client, secretHash, pickUp: null, updatedAt: clock.now() });
    },
    { by: caller },
  );
}
