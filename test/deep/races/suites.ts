import type { RacedSuite } from '../../support/raced-services.ts';
import { administration } from './administration.suite.ts';
import { approvals } from './approvals.suite.ts';
import { attestedClients } from './attested-clients.suite.ts';
import { cancellations } from './cancellations.suite.ts';
import { clientSecrets } from './client-secrets.suite.ts';
import { editsWithOneTag } from './edits.suite.ts';
import { issuances } from './issuances.suite.ts';
import { keys } from './keys.suite.ts';
import { usedOnce } from './once.suite.ts';
import { repeatedOffers } from './repeated-offers.suite.ts';
import { responseCodes } from './response-codes.suite.ts';
import { removedStatusLists } from './status-lists.suite.ts';
import { statuses } from './statuses.suite.ts';
import { subjects } from './subjects.suite.ts';
import { trustLists } from './trust-lists.suite.ts';
import { webhookSecrets } from './webhook-secrets.suite.ts';

/** Everything that many may ask the service for at the same time. */
export const SUITES: readonly RacedSuite[] = [
  usedOnce,
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
