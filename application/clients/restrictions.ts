import { assertMayGrant, type Client } from '../../domain/clients/client.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { Caller, TenantCaller } from '../caller.ts';

type Restrictions = Partial<Pick<Client, 'allowedPresentationConfigs' | 'allowedIssuanceConfigs'>>;

/**
 * The holder of a client's secret has its rights, so a tenant's administrator gets the secret only of clients whose
 * rights lie within its own.
 * @throws Failure `forbidden`.
 */
export function assertMayHoldSecret(caller: Caller, client: Client): void {
  if (caller.tenantId === null) return;
  assertHoldsRolesOf(caller, client);
  assertWithinOwnRestrictions(caller, client);
}

/**
 * Who may not hold a client's secret does not change the client, since a client that was made less than it was is easily
 * taken over, and taking rights away from one that has more is a way to stop it.
 * @throws Failure `forbidden` when the client has, or would get, something that the caller does not have.
 */
export function assertMayChange(caller: TenantCaller, before: Client, after: Client): void {
  // Also a role that no client of a tenant gets is told as such.
  assertMayGrant(
    after.roles.filter((role) => !before.roles.includes(role)),
    caller.roles,
  );
  assertMayHoldSecret(caller, before);
  assertWithinOwnRestrictions(caller, after);
}

function assertHoldsRolesOf(caller: Caller, client: Client): void {
  const missing = client.roles.filter((role) => !caller.roles.includes(role));
  if (missing.length > 0) throw new Failure('forbidden', `this client holds roles that you lack: ${missing.join(', ')}`);
}

/**
 * A restricted client gives no client, itself included, more configurations than it has. A list that is left out stays as it is.
 * @throws Failure `forbidden`.
 */
export function assertWithinOwnRestrictions(caller: TenantCaller, wanted: Restrictions): void {
  assertWithin('allowedPresentationConfigs', caller.allowedPresentationConfigs, wanted.allowedPresentationConfigs);
  assertWithin('allowedIssuanceConfigs', caller.allowedIssuanceConfigs, wanted.allowedIssuanceConfigs);
}

function assertWithin(field: keyof Restrictions, own: readonly string[] | null, wanted: readonly string[] | null | undefined): void {
  if (wanted !== undefined && isWider(own, wanted))
    throw new Failure('forbidden', `${field}: you can only pass on configurations that you may use`);
}

/** Whether `wanted` allows something that `own` does not; empty or null means all. */
function isWider(own: readonly string[] | null, wanted: readonly string[] | null): boolean {
  if (own === null || own.length === 0) return false;
  return wanted === null || wanted.length === 0 || wanted.some((id) => !own.includes(id));
}
