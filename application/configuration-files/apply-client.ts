import { withSecret } from '../../domain/clients/client.ts';
import type { FolderFault } from '../../domain/configuration-files/folder.ts';
import type { TenantCaller } from '../caller.ts';
import { CreateClient, UpdateClient } from '../clients/clients.ts';
import { changeOwn } from '../transactions/own-changes.ts';
import type { Administration } from './administration.ts';
import type { Document } from './documents.ts';
import { isSame, type Outcome } from './outcome.ts';

/** Makes a client, or gives one the rights and the secret that the document says. */
export async function applyClient(administration: Administration, { id, tenant, body }: Document<'client'>): Promise<Outcome> {
  const { ports } = administration;
  const { secret, roles, description = null } = body;
  const { allowedPresentationConfigs = null, allowedIssuanceConfigs = null } = body;
  const caller = await administration.callerOf(tenant);
  const known = await caller.configured.client(id);
  if (known === undefined) {
    await new CreateClient(ports).execute(caller, body);
    return 'created';
  }
  const allowed = { allowedPresentationConfigs, allowedIssuanceConfigs };
  const rights = { roles: [...new Set(roles)], description, ...allowed };
  const present = Object.fromEntries(Object.entries(known).filter(([name]) => name in rights));
  const hasRights = isSame(present, rights);
  const hasSecret = secret === undefined || (await ports.secrets.verify(secret, known.secretHash, id));
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
  await changeOwn(store, caller, async ({ clients }) => {
    const client = await clients.get(clientId);
    await clients.save(withSecret(client, secretHash, clock.now()));
  });
}

/**
 * Configurations that a client is restricted to and that there are none of. That is allowed: the client gets nothing by
 * them, until somebody makes them.
 */
export async function missingConfigurations(
  administration: Administration,
  { file, tenant, body }: Document<'client'>,
): Promise<FolderFault[]> {
  const { configured } = await administration.callerOf(tenant);
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
