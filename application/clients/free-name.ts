import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { administratorOf } from '../../domain/tenants/tenant.ts';
import type { ServiceSettings } from '../ports/settings.ts';

/**
 * The root client stands in the configuration, not in the store, so the store cannot refuse its name.
 * @throws Failure `conflict`.
 */
export function assertFreeName(settings: ServiceSettings, clientId: string): void {
  if (clientId === settings.rootClient.clientId) throw new Failure('conflict', 'a client of this id exists already');
}

/**
 * A tenant's administrator is named after the tenant, also that of one that is yet to be made.
 * @throws Failure `invalid_input` for the name that another tenant's administrator has or will have.
 */
export function assertOwnName(tenantId: TenantId, clientId: string): void {
  if (clientId.endsWith('-admin') && clientId !== administratorOf(tenantId)) {
    throw invalidInput('clientId', 'names that end in -admin are kept for the administrators of tenants');
  }
}
