import type { RaceSuite } from '../../support/raced-services.ts';
import { administration, editsWithOneTag, keys } from './administration.suite.ts';
import { attestedClients, clientSecrets, webhookSecrets } from './client-secrets.suite.ts';
import { approvals, cancellations, issuances, repeatedOffers, singleUseValues } from './issuances.suite.ts';
import { responseCodes } from './response-codes.suite.ts';
import { removedStatusLists, statuses, subjects } from './statuses.suite.ts';
import { trustLists } from './trust-lists.suite.ts';

/** The suites of concurrent requests. */
export const SUITES: readonly RaceSuite[] = [
  singleUseValues,
  attestedClients,
  cancellations,
  repeatedOffers,
  issuances,
  responseCodes,
  statuses,
  subjects,
  removedStatusLists,
  approvals,
  administration,
  editsWithOneTag,
  trustLists,
  keys,
  clientSecrets,
  webhookSecrets,
];
