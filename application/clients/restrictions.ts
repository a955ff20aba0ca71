import { assertMayGrant, type Client } from '../../domain/clients/client.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { Caller, TenantCaller } from '../caller.ts';

type Restrictions = Partial<Pick<Client, 'allowedPresentationConfigs' | 'allowedIssuanceConfigs'>>;

/**
 * The holder of a client's secret has the client's rights, so an administrator gets the secret only of clients whose
 * rights lie within its own.
 * @throws Failure `forbidden`.
 */
export function assertMayHoldSecret(caller: Caller, client: Client): void {
  if (caller.tenantId === null) return;
  assertHoldsRolesOf(caller, client);
  assertWithinOwnRestrictions(caller, client);
}

/**
 * A caller that may not hold a client's secret may not change the client either: reducing its rights would make the secret
 * accessible, or disable a client with more rights.
 * @throws Failure `forbidden` when the client has, or would get, rights that the caller does not have.
 */
export function assertMayChange(caller: TenantCaller, storedClient: Client, changedClient: Client): void {
  // Reports roles that no client of a tenant can have as such.
  assertMayGrant(
    changedClient.roles.filter((role) => !storedClient.roles.includes(role)),
    caller.roles,
  );
  assertMayHoldSecret(caller, storedClient);
  assertWithinOwnRestrictions(caller, changedClient);
}

function assertHoldsRolesOf(caller: Caller, client: Client): void {
  const missingRoles = client.roles.filter((role) => !caller.roles.includes(role));
  if (missingRoles.length > 0) throw new Failure('forbidden', `this client holds roles that you lack: ${missingRoles.join(', ')}`);
}

/**
 * A restricted client grants no client, itself included, more configurations than it has. An absent list is not changed.
 * @throws Failure `forbidden`.
 */
export function assertWithinOwnRestrictions(caller: TenantCaller, requested: Restrictions): void {
  assertWithin('allowedPresentationConfigs', caller.allowedPresentationConfigs, requested.allowedPresentationConfigs);
  assertWithin('allowedIssuanceConfigs', caller.allowedIssuanceConfigs, requested.allowedIssuanceConfigs);
}

function assertWithin(
  field: keyof Restrictions,
  callerIds: readonly string[] | null,
  requestedIds: readonly string[] | null | undefined,
): void {
  if (requestedIds !== undefined && isWider(callerIds, requestedIds))
    throw new Failure('forbidden', `${field}: you can only pass on configurations that you may use`);
}

/** True if `requestedIds` allows something that `callerIds` does not; empty or null means all. */
function isWider(callerIds: readonly string[] | null, requestedIds: readonly string[] | null): boolean {
  if (callerIds === null || callerIds.length === 0) return false;
  return requestedIds === null || requestedIds.length === 0 || requestedIds.some((id) => !callerIds.includes(id));
}
