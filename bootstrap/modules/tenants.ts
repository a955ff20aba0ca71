import { settingsRoutes } from '../../adapters/http/tenants/settings.routes.ts';
import { tenantRoutes } from '../../adapters/http/tenants/tenant.routes.ts';
import { EventBus } from '../../application/ports/event-bus.ts';
import { Store } from '../../application/ports/store.ts';
import { TenantConfigurations } from '../../application/tenant-configuration.ts';
import { EditTags } from '../../application/tenants/edit-tags.ts';
import { GetOwnSettings, UpdateOwnSettings } from '../../application/tenants/own-settings.ts';
import {
  CreateTenant,
  DeleteTenant,
  GetTenant,
  ListTenants,
  UpdateTenant,
} from '../../application/tenants/tenants.ts';
import { type Feature, given } from './feature.ts';

/** Tenants, and their own settings. */
export const tenants: Feature = {
  classes: [
    ...[ListTenants, GetTenant, CreateTenant, UpdateTenant, DeleteTenant],
    ...[GetOwnSettings, UpdateOwnSettings, EditTags],
    given(TenantConfigurations, { store: Store, eventBus: EventBus }),
  ],
  administered: [tenantRoutes, settingsRoutes],
};
