import type { Client } from '../domain/clients/client.ts';
import type { Role } from '../domain/clients/role.ts';
import type { TenantId } from '../domain/shared/ids.ts';
import type { VerifiedAccess } from './ports/access-tokens.ts';
import type { Precondition } from './ports/repositories.ts';
import type { TenantConfiguration } from './tenant-cache/tenant-configuration.ts';

/** The caller of the administrative interface. Roles and restrictions are current, not those of the token. */
export type Caller = TenantCaller | ServiceCaller;

export type TenantCaller = {
  readonly tenantId: TenantId;
  readonly clientId: string;
  /** The person who uses the client, if an external provider names one. */
  readonly person?: string;
  readonly roles: readonly Role[];
  readonly allowedPresentationConfigs: Client['allowedPresentationConfigs'];
  readonly allowedIssuanceConfigs: Client['allowedIssuanceConfigs'];
  readonly tenant: TenantConfiguration;
  readonly requestId?: string;
  /** The stored state that the caller expects of a document that it writes; the store checks it. */
  readonly precondition?: Precondition;
};

/** The caller of an event stream: its token limits what it may receive later on. */
export type Listener = TenantCaller & { readonly access: VerifiedAccess; readonly endsAt?: Date };

/**
 * A tenant's client with cached rights: cheap, but possibly out of date. Only `attemptFor` turns it into a caller, and
 * finds out.
 */
export type CachedCaller = Omit<TenantCaller, 'tenant'> & {
  /** Claims of its token. */
  readonly access?: VerifiedAccess;
  readonly cachedTenant: TenantConfiguration;
  /**
   * Returns the client with its rights in the stored configuration.
   * @throws Failure when it may not call any more.
   */
  readonly reauthorize: (storedTenant: TenantConfiguration) => Promise<TenantCaller>;
};

/** An account that manages tenants and belongs to none. */
export type ServiceCaller = {
  readonly tenantId: null;
  readonly clientId: string;
  /** The person who uses the client, if an external provider names one. */
  readonly person?: string;
  readonly roles: readonly Role[];
  readonly requestId?: string;
  readonly precondition?: Precondition;
};
