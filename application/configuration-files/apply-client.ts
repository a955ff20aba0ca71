import { withSecret } from '../../domain/clients/client.ts';
import type { FolderFault } from '../../domain/configuration-files/folder.ts';
import type { TenantCaller } from '../caller.ts';
import { CreateClient, UpdateClient } from '../clients/clients.ts';
import { changeTenant } from '../transactions/tenant-changes.ts';
import type { Administration } from './administration.ts';
import type { Document } from './documents.ts';
import { isSame, type Outcome } from './outcome.ts';

/** Creates a client, or updates its rights and secret. */
export async function applyClient(administration: Administration, { id, tenant, body }: Document<'client'>): Promise<Outcome> {
  const { ports } = administration;
  const { secret, roles, description = null } = body;
  const { allowedPresentationConfigs = null, allowedIssuanceConfigs = null } = body;
  const caller = await administration.callerOf(tenant);
  const storedClient = await caller.tenant.client(id);
  if (storedClient === undefined) {
    await new CreateClient(ports).execute(caller, body);
    return 'created';
  }
  const restrictions = { allowedPresentationConfigs, allowedIssuanceConfigs };
  const rights = { roles: [...new Set(roles)], description, ...restrictions };
  const currentRights = Object.fromEntries(Object.entries(storedClient).filter(([name]) => name in rights));
  const hasRights = isSame(currentRights, rights);
  const hasSecret = secret === undefined || (await ports.secrets.verify(secret, storedClient.secretHash, id));
  if (!hasRights) await new UpdateClient(ports).execute(caller, id, rights);
  if (secret !== undefined && !hasSecret) await replaceSecret(administration, caller, id, secret);
  return hasRights && hasSecret ? 'unchanged' : 'changed';
}

async function replaceSecret(
  { ports: { store, secrets, clock } }: Administration,
  caller: TenantCaller,
  clientId: string,
  secret: string,
): Promise<void> {
  const secretHash = await secrets.hash(secret);
  await changeTenant(store, caller, async ({ clients }) => {
    const client = await clients.get(clientId);
    await clients.save(withSecret(client, secretHash, clock.now()));
  });
}

/**
 * Warnings about unknown configurations in a client's restrictions. They are allowed: the client can use them once they
 * are created.
 */
export async function findMissingConfigurations(
  administration: Administration,
  { file, tenant, body }: Document<'client'>,
): Promise<FolderFault[]> {
  const caller = await administration.callerOf(tenant);
  const configurationsByProperty = {
    allowedPresentationConfigs: await caller.tenant.presentationConfigurations(),
    allowedIssuanceConfigs: await caller.tenant.credentialConfigurations(),
  };
  return Object.entries(configurationsByProperty).flatMap(([member, configurations]) => {
    const ids = new Set(configurations.map(({ id }) => id));
    const names = body[member as keyof typeof configurationsByProperty] ?? [];
    return names.flatMap((id, index): FolderFault[] => {
      const message = `the configuration "${id}" does not exist yet, so this id allows nothing`;
      return ids.has(id) ? [] : [{ file, path: `${member}.${index}`, message }];
    });
  });
}
