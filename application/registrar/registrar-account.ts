import { Failure } from '../../domain/shared/failure.ts';
import type { RegistrarAccount } from '../ports/registrar.ts';
import type { TenantView } from '../tenant-configuration.ts';

/** The tenant's account at its registrar, if it has one. */
export async function accountOf(view: TenantView): Promise<RegistrarAccount | undefined> {
  const configuration = await view.registrarConfiguration();
  return configuration && { tenantId: view.tenantId, configuration };
}

/** @throws Failure `conflict` when the tenant has none. */
export async function requireAccount(view: TenantView): Promise<RegistrarAccount> {
  const account = await accountOf(view);
  if (account === undefined) {
    throw new Failure('conflict', 'no registrar is configured; POST /registrar/config comes first');
  }
  return account;
}
