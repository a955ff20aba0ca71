import type { TenantId } from '../../domain/shared/ids.ts';
import type { PresentationConfigurationBody } from '../../domain/verification/configuration.ts';
import { demandedLists } from '../../domain/verification/dcql/demanded-lists.ts';
import type { ListSigners } from '../trust-lists/list-signers.ts';

type Anchors = PresentationConfigurationBody['trustAnchors'];

/**
 * A query may name trust lists (OpenID4VP 1.0 section 6.1.1, `etsi_tl`) that are no anchors yet: they become some, under the
 * certificate of who signs them now.
 * @throws Failure `invalid_input` for lists that cannot be had.
 */
export async function pinDemandedLists(
  signers: ListSigners,
  tenantId: TenantId,
  body: PresentationConfigurationBody,
): Promise<PresentationConfigurationBody> {
  const named = new Set(listsOf(body.trustAnchors));
  const unnamed = new Map(
    demandedLists(body.dcql_query)
      .filter(({ uri }) => !named.has(uri))
      .map((list) => [list.uri, list]),
  );
  if (unnamed.size === 0) return body;
  const pins = await signers.pin(tenantId, [...unnamed.values()]);
  const added = [...unnamed.keys()].map((trustList) => {
    const pem = pins.get(trustList);
    return pem === undefined ? { trustList } : { trustList, signedBy: [pem] };
  });
  return withAnchors(body, added);
}

/** Adds anchors for lists that the query names and `trustAnchors` does not. */
export function withAnchors(
  body: PresentationConfigurationBody,
  anchors: Anchors,
): PresentationConfigurationBody {
  const named = new Set(listsOf(body.trustAnchors));
  const wanted = new Set(demandedLists(body.dcql_query).map(({ uri }) => uri));
  const added = anchors.filter(
    (anchor) => 'trustList' in anchor && wanted.has(anchor.trustList) && !named.has(anchor.trustList),
  );
  return added.length === 0 ? body : { ...body, trustAnchors: [...body.trustAnchors, ...added] };
}

function listsOf(anchors: Anchors): readonly string[] {
  return anchors.flatMap((anchor) => ('trustList' in anchor ? [anchor.trustList] : []));
}
