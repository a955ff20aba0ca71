import { statusListAdministrationRoutes } from '../../adapters/http/status-lists/administration.routes.ts';
import { statusListRoutes } from '../../adapters/http/status-lists/status-list.routes.ts';
import { Clock } from '../../application/ports/clock.ts';
import { EventBus } from '../../application/ports/event-bus.ts';
import { Kms } from '../../application/ports/kms.ts';
import { OwnStatusLists } from '../../application/ports/own-status-lists.ts';
import { Random } from '../../application/ports/random.ts';
import { ServiceSettings } from '../../application/ports/settings.ts';
import { Store } from '../../application/ports/store.ts';
import { AggregateStatusLists } from '../../application/status-lists/aggregate-status-lists.ts';
import { StatusChecker } from '../../application/status-lists/check-status.ts';
import { RemoteStatusLists } from '../../application/status-lists/remote-status-lists.ts';
import { RevokeSession } from '../../application/status-lists/revoke-session.ts';
import { StatusAllocator } from '../../application/status-lists/status-allocator.ts';
import { StatusCwtPublisher } from '../../application/status-lists/status-cwt-publisher.ts';
import {
  CreateStatusList,
  DeleteStatusList,
  GetStatusList,
  ListStatusLists,
  UpdateStatusList,
} from '../../application/status-lists/status-lists.ts';
import { StatusPublisher } from '../../application/status-lists/status-publisher.ts';
import { TenantConfigurations } from '../../application/tenant-configuration.ts';
import { type Feature, given } from './feature.ts';

const base = { store: Store, clock: Clock, random: Random, settings: ServiceSettings };
const wallet = { store: Store, tenantConfigurations: TenantConfigurations, clock: Clock };

/** Status lists that tenants publish, and those of others. */
export const statusLists: Feature = {
  classes: [
    ...[ListStatusLists, GetStatusList, CreateStatusList, UpdateStatusList, DeleteStatusList],
    ...[AggregateStatusLists, StatusChecker, RemoteStatusLists],
    given(StatusAllocator, base),
    given(
      StatusPublisher,
      { ...wallet, kms: Kms, settings: ServiceSettings, eventBus: EventBus },
      OwnStatusLists,
    ),
    given(StatusCwtPublisher, { ...wallet, statusPublisher: StatusPublisher, kms: Kms }),
    given(RevokeSession, { ...wallet, statusAllocator: StatusAllocator }),
  ],
  open: [statusListRoutes],
  administered: [statusListAdministrationRoutes],
};
