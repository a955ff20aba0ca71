import { ContainerModule } from 'inversify';
import { PublishedListRoutes } from '../../adapters/http/trust-lists/published-list.routes.ts';
import { TrustListRoutes } from '../../adapters/http/trust-lists/trust-list.routes.ts';
import { Clock } from '../../application/ports/clock.ts';
import { Kms } from '../../application/ports/kms.ts';
import { Log } from '../../application/ports/log.ts';
import { Random } from '../../application/ports/random.ts';
import { ServiceSettings } from '../../application/ports/settings.ts';
import { Store } from '../../application/ports/store.ts';
import {
  GetTrustList,
  GetTrustListVersion,
  ListTrustLists,
  ListTrustListVersions,
} from '../../application/trust-lists/read-trust-lists.ts';
import { RenewTrustLists } from '../../application/trust-lists/renew-trust-lists.ts';
import { ServeTrustList } from '../../application/trust-lists/serve-trust-list.ts';
import { TrustListPublisher } from '../../application/trust-lists/trust-list-publisher.ts';
import {
  CreateTrustList,
  DeleteTrustList,
  ReplaceTrustList,
  UpdateTrustList,
} from '../../application/trust-lists/write-trust-lists.ts';
import { wire } from '../wire.ts';

/** Trust lists that tenants publish. */
export const trustLists = new ContainerModule((options) => {
  const store = { store: Store };
  const publisher = { trustListPublisher: TrustListPublisher };
  wire(options, TrustListPublisher, {
    ...store,
    kms: Kms,
    random: Random,
    clock: Clock,
    settings: ServiceSettings,
  });
  wire(options, RenewTrustLists, { ...store, ...publisher, log: Log });

  wire(options, ServeTrustList, { ...store, clock: Clock });
  wire(options, PublishedListRoutes, { serveTrustList: ServeTrustList });

  wire(options, ListTrustLists, store);
  wire(options, GetTrustList, store);
  wire(options, ListTrustListVersions, store);
  wire(options, GetTrustListVersion, store);
  wire(options, CreateTrustList, { ...publisher, random: Random });
  wire(options, ReplaceTrustList, publisher);
  wire(options, UpdateTrustList, publisher);
  wire(options, DeleteTrustList, publisher);
  wire(options, TrustListRoutes, {
    listTrustLists: ListTrustLists,
    getTrustList: GetTrustList,
    createTrustList: CreateTrustList,
    replaceTrustList: ReplaceTrustList,
    updateTrustList: UpdateTrustList,
    deleteTrustList: DeleteTrustList,
    listTrustListVersions: ListTrustListVersions,
    getTrustListVersion: GetTrustListVersion,
    settings: ServiceSettings,
  });
});
