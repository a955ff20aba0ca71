import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { administratorOf } from '../../domain/tenants/tenant.ts';
import type { ServiceSettings } from '../ports/settings.ts';

/**
 * The root client is configured and not stored, so the store cannot reject its id.
 * @throws Failure `conflict`.
 */
export function assertIdNotReserved(settings: ServiceSettings, clientId: string): void {
  if (clientId === settings.rootClient.clientId) throw new Failure('conflict', 'a client with this id already exists');
}

/**
 * Administrators of tenants have derived ids, which are reserved also for future tenants.
 * @throws Failure `invalid_input` for the id of another tenant's administrator.
 */
export function assertNotAdministratorId(tenantId: TenantId, clientId: string): void {
  if (clientId.endsWith('-admin') && clientId !== administratorOf(tenantId)) {
    throw invalidInput('clientId', 'names that end in -admin are reserved for the administrators of tenants');
  }
}
