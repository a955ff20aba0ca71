import { type FieldError, invalidFields } from '../../domain/shared/failure.ts';
import type { Finding } from '../../domain/shared/finding.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { TrustList } from '../../domain/trust-lists/lote.ts';
import { credentialIssuers } from '../../domain/trust-lists/select-certificates.ts';
import type { PresentationConfigurationBody } from '../../domain/verification/configuration.ts';
import { findPurposeProblem, type ListSigners } from '../trust-lists/list-signers.ts';
import { pinSigners } from '../trust-lists/verify-trust-list.ts';

type Anchors = PresentationConfigurationBody['trustAnchors'];
type ListAnchor = Extract<Anchors[number], { readonly trustList: string }>;

/**
 * Verifies the trust lists among the anchors of a configuration as a presentation would.
 * @param storedAnchors stored anchors. For these a document that is no longer a trust list is only a warning.
 * @returns a warning for each list that no presentation can use now.
 * @throws Failure `invalid_input` for addresses of documents that are not trust lists.
 */
export async function findTrustListProblems(
  listSigners: ListSigners,
  tenantId: TenantId,
  anchors: Anchors,
  storedAnchors: Anchors,
): Promise<readonly Finding[]> {
  const storedUris = new Set(storedAnchors.flatMap((anchor) => ('trustList' in anchor ? [anchor.trustList] : [])));
  const lists = anchors.flatMap((anchor, index) => {
    if (!('trustList' in anchor)) return [];
    const { trustList: uri, signedBy = [] } = anchor;
    return [{ anchor, uri, signers: pinSigners(signedBy), path: `trustAnchors.${index}.trustList` }];
  });
  const inspected = await listSigners.inspect(tenantId, lists);
  const errors: FieldError[] = [];
  const findings: Finding[] = [];
  for (const [position, { anchor, uri, path }] of lists.entries()) {
    const outcome = inspected[position];
    if (outcome === undefined) continue;
    if ('refusal' in outcome) {
      const { fault, message } = outcome.refusal;
      if (fault === 'malformed' && !storedUris.has(uri)) {
        errors.push({ path, message: `The document at this address is not a trust list: ${message}.` });
      } else findings.push(findingOf(path, message));
    } else if (outcome.list !== undefined) {
      const problem = findContentProblem(outcome.list, anchor);
      if (problem !== undefined) findings.push(findingOf(path, problem));
    }
  }
  if (errors.length > 0) throw invalidFields(errors);
  return findings;
}

function findContentProblem(list: TrustList, anchor: ListAnchor): string | undefined {
  const { follow, serviceTypes } = anchor;
  // TS 119 602 section 6.3.15
  if (list.nextUpdate === null) return 'its operator has closed it';
  if (follow !== undefined) return undefined;
  const isPointing = list.isListOfLists === true || (list.entities.length === 0 && list.pointers !== undefined);
  if (isPointing) return 'it only points to other lists, which require `follow`';
  return findPurposeProblem(list, credentialIssuers(serviceTypes));
}

function findingOf(member: string, reason: string): Finding {
  return {
    rule: 'OpenID4VP 1.0 section 6.1.1.2, ETSI TS 119 602',
    member,
    concerns: 'holders of credentials whose issuers are on the list: their presentations are rejected',
    message: `the trust list cannot be used now: ${reason}`,
    change: 'correct the address or signedBy, or ask the operator of the list to publish a valid list',
  };
}
