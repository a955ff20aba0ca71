import type { TenantCaller } from '../application/caller.ts';
import type { ClientCreation } from '../domain/clients/client.ts';
import { Failure, type FieldError } from '../domain/shared/failure.ts';
import type { ImportDocument } from './import-documents.ts';
import { isSame, type Outcome, tenantIdOf } from './import-outcome.ts';
import type { ImportTools } from './import-tools.ts';

/** Makes a client, or gives one the rights and the secret that the document says. */
export async function importClient(tools: ImportTools, document: ImportDocument<'client'>): Promise<Outcome> {
  const { id, body } = document;
  const { secret, roles, description = null } = body;
  const { allowedPresentationConfigs = null, allowedIssuanceConfigs = null } = body;
  const caller = await tools.callerOf(tenantIdOf(document));
  await assertConfigurationsKnown(caller, body);
  const known = await caller.view.client(id);
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

/** Here it can be known that a restriction leads nowhere. */
async function assertConfigurationsKnown({ view }: TenantCaller, body: ClientCreation): Promise<void> {
  const presentations = await view.presentationConfigurations();
  const credentials = await view.credentialConfigurations();
  const errors = [
    ...missing('allowedPresentationConfigs', body.allowedPresentationConfigs, presentations),
    ...missing('allowedIssuanceConfigs', body.allowedIssuanceConfigs, credentials),
  ];
  const [first] = errors;
  if (first !== undefined) throw new Failure('invalid_input', { message: first.message, errors });
}

function missing(
  member: string,
  wanted: readonly string[] | null | undefined,
  known: readonly { readonly id: string }[],
): FieldError[] {
  const ids = new Set(known.map(({ id }) => id));
  return (wanted ?? []).flatMap((id, index) =>
    ids.has(id) ? [] : [{ path: `${member}.${index}`, message: `there is no configuration "${id}"` }],
  );
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
