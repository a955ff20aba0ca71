import type { Client } from '../domain/clients/client.ts';
import type { Role } from '../domain/clients/role.ts';
import type { TenantId } from '../domain/shared/ids.ts';
import type { VerifiedAccess } from './ports/access-tokens.ts';
import type { Precondition } from './ports/repositories.ts';
import type { TenantConfiguration } from './tenant-cache/tenant-configuration.ts';

/** Who calls the administrative interface. Roles and restrictions are those of this moment, not the token's. */
export type Caller = TenantCaller | ServiceCaller;

export type TenantCaller = {
  readonly tenantId: TenantId;
  readonly clientId: string;
  /** Who calls by the client, where an external provider names a person. */
  readonly person?: string;
  readonly roles: readonly Role[];
  readonly allowedPresentationConfigs: Client['allowedPresentationConfigs'];
  readonly allowedIssuanceConfigs: Client['allowedIssuanceConfigs'];
  readonly configured: TenantConfiguration;
  readonly requestId?: string;
  /** What the caller takes to be stored of the thing that it writes; the store looks. */
  readonly precondition?: Precondition;
};

/** A caller that stays: what its token says tells what it may know later on. */
export type Listener = TenantCaller & { readonly access: VerifiedAccess; readonly endsAt?: Date };

/**
 * A tenant's client as this process knew it when it last looked: cheap, but possibly out of date. `attemptFor` alone
 * turns it into a caller, and finds out.
 */
export type RememberedCaller = Omit<TenantCaller, 'configured'> & {
  /** What its token says. */
  readonly access?: VerifiedAccess;
  readonly remembered: TenantConfiguration;
  /**
   * The same client with the rights that it has by another configuration.
   * @throws Failure when it may not call here any more.
   */
  readonly again: (stored: TenantConfiguration) => Promise<TenantCaller>;
};

/** An account that manages tenants and belongs to none. */
export type ServiceCaller = {
  readonly tenantId: null;
  readonly clientId: string;
  /** Who calls by the client, where an external provider names a person. */
  readonly person?: string;
  readonly roles: readonly Role[];
  readonly requestId?: string;
  readonly precondition?: Precondition;
};
