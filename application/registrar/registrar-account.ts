import { Failure } from '../../domain/shared/failure.ts';
import type { RegistrarAccount } from '../ports/registrar.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

export async function accountOf(tenant: TenantConfiguration): Promise<RegistrarAccount | undefined> {
  const configuration = await tenant.registrarConfiguration();
  return configuration && { tenantId: tenant.tenantId, configuration };
}

/** @throws Failure `conflict` when the tenant has no account. */
export async function getAccount(tenant: TenantConfiguration): Promise<RegistrarAccount> {
  const account = await accountOf(tenant);
  if (account === undefined) throw new Failure('conflict', 'no registrar is configured; send POST /registrar/config first');
  return account;
}
