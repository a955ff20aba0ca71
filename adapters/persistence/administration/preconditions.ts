import {
  type Precondition,
  preconditionOf,
  type ServiceReader,
  type TenantReader,
  type Writing,
} from '../../../application/ports/repositories.ts';
import { resourceOf } from '../../../domain/resources.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { unlessMissing } from './existing.ts';

/**
 * Looks in the transaction that is about to write. Nobody else can write in between: what asks for this runs alone,
 * and every other write of the tenant waits for the end of the transaction before its own.
 * @throws Failure `conflict`.
 */
export async function assertHolds(writing: Writing | undefined, own: TenantReader): Promise<void> {
  const precondition = preconditionOf(writing);
  if (precondition === undefined) return;
  const { repository } = resourceOf(precondition.kind);
  refuseUnless(precondition, await findIn(own[repository as keyof TenantReader], precondition.id));
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

/** A repository finds what may be missing, or gets what is there. */
function findIn(repository: object, id: string): Promise<object | undefined> {
  const { find, get } = repository as { find?: Read; get: Read };
  return unlessMissing((find ?? get).call(repository, id));
}

type Read = (id: string) => Promise<object | undefined>;
