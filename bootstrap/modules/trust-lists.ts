import { publishedListRoutes } from '../../adapters/http/trust-lists/published-list.routes.ts';
import { trustListRoutes } from '../../adapters/http/trust-lists/trust-list.routes.ts';
import { TrustLists } from '../../application/trust-lists/remote-trust-lists.ts';
import { RenewTrustLists } from '../../application/trust-lists/renew-trust-lists.ts';
import { ServeTrustList } from '../../application/trust-lists/serve-trust-list.ts';
import { TrustListPublisher } from '../../application/trust-lists/trust-list-publisher.ts';
import {
  GetTrustListVersion,
  ListTrustListVersions,
} from '../../application/trust-lists/trust-list-versions.ts';
import {
  CreateTrustList,
  DeleteTrustList,
  GetTrustList,
  ListTrustLists,
  ReplaceTrustList,
  UpdateTrustList,
} from '../../application/trust-lists/trust-lists.ts';
import type { Feature } from './feature.ts';

/** Trust lists that tenants publish, and those of others. */
export const trustLists: Feature = {
  classes: [
    ...[ListTrustLists, GetTrustList, CreateTrustList, ReplaceTrustList, UpdateTrustList, DeleteTrustList],
    ...[ListTrustListVersions, GetTrustListVersion, ServeTrustList],
    ...[TrustListPublisher, RenewTrustLists, TrustLists],
  ],
  open: [publishedListRoutes],
  administered: [trustListRoutes],
};
