import type { Client } from '../domain/clients/client.ts';
import type { Role } from '../domain/clients/role.ts';
import type { TenantId } from '../domain/shared/ids.ts';
import type { VerifiedAccess } from './ports/access-tokens.ts';
import type { Precondition, TenantHead } from './ports/store.ts';
import type { TenantConfiguration } from './tenant-configuration.ts';

/** Who calls the administrative interface. Roles and restrictions are those of this moment, not the token's. */
export type Caller = TenantCaller | ServiceCaller;

export type TenantCaller = {
  readonly tenantId: TenantId;
  readonly clientId: string;
  readonly roles: readonly Role[];
  readonly allowedPresentationConfigs: Client['allowedPresentationConfigs'];
  readonly allowedIssuanceConfigs: Client['allowedIssuanceConfigs'];
  readonly configured: TenantConfiguration;
  readonly requestId?: string;
  /** What the caller takes to be stored of the thing that it writes; the store looks. */
  readonly precondition?: Precondition;
};

/** A caller that stays: what its token says tells what it may know later on. */
export type Listener = TenantCaller & { readonly access: VerifiedAccess };

/**
 * A tenant's client as this process knew it when it last looked. Cheap, but possibly out of date: whoever takes one
 * either reads the tenant's head anyway and calls `confirmed`, or writes under the condition that the revision still
 * is `unconfirmedView.head.revision`, and throws `StaleView` when it is not. The call is then repeated with a caller
 * that was looked up anew.
 */
export type UnconfirmedCaller = Omit<TenantCaller, 'configured'> & {
  readonly unconfirmedView: TenantConfiguration;
};

export function unconfirmed({ configured, ...rest }: TenantCaller): UnconfirmedCaller {
  return { ...rest, unconfirmedView: configured };
}

/** What an unconfirmed caller's rights rested on has changed. Nothing may have happened before it is thrown. */
export class StaleView extends Error {}

/** @throws StaleView when the tenant changed since `caller` was looked up. */
export function confirmed(caller: UnconfirmedCaller, head: TenantHead | undefined): TenantCaller {
  const { unconfirmedView: configured, ...rest } = caller;
  if (head?.revision !== configured.head.revision || head.status !== 'active') throw new StaleView();
  return { ...rest, configured };
}

/** An account that manages tenants and belongs to none. */
export type ServiceCaller = {
  readonly tenantId: null;
  readonly clientId: string;
  readonly roles: readonly Role[];
  readonly requestId?: string;
  readonly precondition?: Precondition;
};
