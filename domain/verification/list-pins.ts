import { requiredTrustLists } from '../dcql/required-trust-lists.ts';
import type { PresentationConfigurationBody } from './configuration.ts';

/**
 * Lists that a query named before (`etsi_tl`) and `trustAnchors` does not contain keep the signers that were pinned when they were first
 * written.
 */
export function keepDemandedListPins(
  body: PresentationConfigurationBody,
  previous: PresentationConfigurationBody | undefined,
): PresentationConfigurationBody {
  const { trustAnchors } = body;
  const configuredLists = new Set(trustAnchors.flatMap((anchor) => ('trustList' in anchor ? [anchor.trustList] : [])));
  const demandedUris = new Set(requiredTrustLists(body.dcql_query).map(({ uri }) => uri));
  const retainedAnchors = (previous?.trustAnchors ?? []).filter(
    (anchor) => 'trustList' in anchor && demandedUris.has(anchor.trustList) && !configuredLists.has(anchor.trustList),
  );
  return { ...body, trustAnchors: [...trustAnchors, ...retainedAnchors] };
}
