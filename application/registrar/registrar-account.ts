import { Failure } from '../../domain/shared/failure.ts';
import type { RegistrarAccount } from '../ports/registrar.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** The tenant's account at its registrar, if it has one. */
export async function accountOf(configured: TenantConfiguration): Promise<RegistrarAccount | undefined> {
  const configuration = await configured.registrarConfiguration();
  return configuration && { tenantId: configured.tenantId, configuration };
}

/** @throws Failure `conflict` when the tenant has none. */
export async function getAccount(configured: TenantConfiguration): Promise<RegistrarAccount> {
  const account = await accountOf(configured);
  if (account === undefined) throw new Failure('conflict', 'no registrar is configured; POST /registrar/config comes first');
  return account;
}
