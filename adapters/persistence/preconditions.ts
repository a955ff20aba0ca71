import {
  type EditedKind,
  type Precondition,
  preconditionOf,
  type ServiceReader,
  type TenantReader,
  type Writing,
} from '../../application/ports/store.ts';
import { Failure } from '../../domain/shared/failure.ts';

type Find<Repositories> = (own: Repositories, id: string) => Promise<object | undefined>;

const FIND: { readonly [Kind in EditedKind]: Find<TenantReader> } = {
  tenant: ({ tenant }) => unlessMissing(tenant.get()),
  client: ({ clients }, id) => unlessMissing(clients.get(id)),
  'key-chain': ({ keyChains }, id) => keyChains.find(id),
  'issuance-configuration': ({ issuanceConfiguration }, id) => issuanceConfiguration.find(id),
  'credential-configuration': ({ credentialConfigurations }, id) => credentialConfigurations.find(id),
  'presentation-configuration': ({ presentationConfigurations }, id) => presentationConfigurations.find(id),
  'registrar-configuration': ({ registrarConfiguration }, id) => registrarConfiguration.find(id),
  'status-list': ({ statusLists }, id) => unlessMissing(statusLists.get(id)),
  'trust-list': ({ trustLists }, id) => trustLists.find(id),
  'session-settings': ({ tenant }) => unlessMissing(tenant.get()),
  'status-list-settings': ({ tenant }) => unlessMissing(tenant.get()),
};

/**
 * Looks in the transaction that is about to write. Nobody else can write in between: whoever asks for this runs alone,
 * and every other write of the tenant waits for the end of the transaction before its own.
 * @throws Failure `conflict`.
 */
export async function assertHolds(writing: Writing | undefined, own: TenantReader): Promise<void> {
  const precondition = preconditionOf(writing);
  if (precondition === undefined) return;
  refuseUnless(precondition, await FIND[precondition.kind](own, precondition.id));
}

/** The same for an account that manages tenants, which removes one. */
export async function assertTenantHolds(writing: Writing | undefined, all: ServiceReader): Promise<void> {
  const precondition = preconditionOf(writing);
  if (precondition === undefined) return;
  if (precondition.kind !== 'tenant') throw new Error('Only tenants are edited for the whole service.');
  refuseUnless(precondition, await all.tenants.find(precondition.id as never));
}

function refuseUnless({ holds }: Precondition, found: object | undefined): void {
  if (holds(found)) return;
  throw new Failure(
    'conflict',
    found === undefined
      ? 'there is nothing here that If-Match could mean; leave it out to make something'
      : 'somebody changed this since you read it; read it again and repeat the change',
  );
}

async function unlessMissing<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found;
  } catch (error) {
    if (error instanceof Failure && error.code === 'not_found') return undefined;
    throw error;
  }
}
