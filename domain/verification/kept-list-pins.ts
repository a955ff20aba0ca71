import { demandedLists } from '../dcql/demanded-lists.ts';
import type { PresentationConfigurationBody } from './configuration.ts';

/** Lists that a query named before (`etsi_tl`), and `trustAnchors` does not, keep who was pinned for them when they were written first. */
export function keepDemandedListPins(
  body: PresentationConfigurationBody,
  before: PresentationConfigurationBody | undefined,
): PresentationConfigurationBody {
  const { trustAnchors } = body;
  const named = new Set(trustAnchors.flatMap((anchor) => ('trustList' in anchor ? [anchor.trustList] : [])));
  const wanted = new Set(demandedLists(body.dcql_query).map(({ uri }) => uri));
  const kept = (before?.trustAnchors ?? []).filter(
    (anchor) => 'trustList' in anchor && wanted.has(anchor.trustList) && !named.has(anchor.trustList),
  );
  return { ...body, trustAnchors: [...trustAnchors, ...kept] };
}
