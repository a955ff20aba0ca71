import type { Client } from '../../domain/clients/client.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { Caller, TenantCaller } from '../caller.ts';

type Restrictions = Partial<Pick<Client, 'allowedPresentationConfigs' | 'allowedIssuanceConfigs'>>;

/**
 * Whoever holds a client's secret has its rights, so a tenant's administrator gets the secret only of clients whose
 * rights lie within its own.
 * @throws Failure `forbidden`.
 */
export function assertMayHoldSecret(caller: Caller, client: Client): void {
  if (caller.tenantId === null) return;
  const missing = client.roles.filter((role) => !caller.roles.includes(role));
  if (missing.length > 0) {
    throw new Failure('forbidden', `this client holds roles that you lack: ${missing.join(', ')}`);
  }
  assertWithinOwnRestrictions(caller, client);
}

/**
 * A restricted client gives no client, itself included, more configurations than it has. A list that is left out
 * stays as it is.
 * @throws Failure `forbidden`.
 */
export function assertWithinOwnRestrictions(caller: TenantCaller, wanted: Restrictions): void {
  assertWithin(
    'allowedPresentationConfigs',
    caller.allowedPresentationConfigs,
    wanted.allowedPresentationConfigs,
  );
  assertWithin('allowedIssuanceConfigs', caller.allowedIssuanceConfigs, wanted.allowedIssuanceConfigs);
}

function assertWithin(
  field: keyof Restrictions,
  own: readonly string[] | null,
  wanted: readonly string[] | null | undefined,
): void {
  if (own === null || own.length === 0 || wanted === undefined) return;
  // Empty or null means all.
  const wider = wanted === null || wanted.length === 0 || wanted.some((id) => !own.includes(id));
  if (wider) throw new Failure('forbidden', `${field}: you can only pass on configurations that you may use`);
}
