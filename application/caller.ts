import type { Client } from '../domain/clients/client.ts';
import type { Role } from '../domain/clients/role.ts';
import type { TenantId } from '../domain/shared/ids.ts';
import type { TenantView } from './steps/tenant-views.ts';

/** Who calls the administrative interface. Roles and restrictions are those of this moment, not the token's. */
export type Caller = TenantCaller | ServiceCaller;

export type TenantCaller = {
  readonly tenantId: TenantId;
  readonly clientId: string;
  readonly roles: readonly Role[];
  readonly allowedPresentationConfigs: Client['allowedPresentationConfigs'];
  readonly allowedIssuanceConfigs: Client['allowedIssuanceConfigs'];
  readonly view: TenantView;
};

/** An account that manages tenants and belongs to none. */
export type ServiceCaller = {
  readonly tenantId: null;
  readonly clientId: string;
  readonly roles: readonly Role[];
};
