import type { CompiledCredentialQuery } from '../../domain/dcql/compile.ts';
import type { Refusal } from '../../domain/shared/refusal.ts';
import { withoutQuery } from '../../domain/shared/without-query.ts';
import type { StatusReference } from '../../domain/status-lists/reference.ts';
import type { Binding } from '../../domain/verification/binding.ts';
import type { PresentedIssuer } from '../../domain/verification/presented-issuer.ts';
import type { CheckInputs } from '../../domain/verification/report.ts';
import type { ChainVerdict } from '../ports/certificates.ts';
import type { IssuerTrust } from './issuer-trust.ts';

type CheckContext = { readonly trust: IssuerTrust; readonly binding: Binding; readonly now: Date };
type VerifiedIssuer = { readonly issuer: Extract<ChainVerdict, { trusted: true }>; readonly statusReference: StatusReference | undefined };

/** Inputs of the checks before the presentation is parsed. */
export function requestInputs({ trust, binding, now }: CheckContext, { format, types }: CompiledCredentialQuery): CheckInputs {
  const { anchors, lists } = trust;
  return {
    form: format,
    'issuer trust': `${anchors.length} anchors from ${lists.length} trust lists and the configuration`,
    'validity period': now.toISOString(),
    'key binding': [binding.audience].flat().join(' '),
    query: [...types].join(' '),
  };
}

/** Inputs of the checks that are known after the offline verification. */
export function credentialInputs({ trust }: Pick<CheckContext, 'trust'>, { issuer, statusReference }: VerifiedIssuer): CheckInputs {
  const listings = trust.listedAnchors.get(issuer.anchor)?.listings ?? [];
  const sources = listings.map(({ entity, list }) => `${entity.name} on ${withoutQuery(list.uri)} number ${list.sequenceNumber}`);
  return {
    'issuer trust': `${issuer.subject} under the anchor ${issuer.anchor} (${sources.length === 0 ? 'configured' : sources.join(', ')})`,
    // The index would identify the credential, which a rejection must not reveal.
    status: statusReference === undefined ? 'none' : withoutQuery(statusReference.uri),
  };
}

/** The reason of a rejection. An issuer without an anchor may be on a trust list that could not be fetched, so these are listed. */
export function detailOf({ reason, message }: Refusal, { missing }: IssuerTrust): string {
  if (reason !== 'untrusted_chain' || missing.length === 0) return message;
  return `${message}; trust lists that could not be used: ${missing.join('; ')}`;
}

/** The signer and the trust lists that vouch for it, for backends and operators. */
export function issuerOf({ trust }: Pick<CheckContext, 'trust'>, { issuer }: VerifiedIssuer): PresentedIssuer {
  const { subject, fingerprint, anchor } = issuer;
  const listings = trust.listedAnchors.get(anchor)?.listings ?? [];
  const listEntries = listings.map(({ entity, list }) => ({
    entity: entity.name,
    list: withoutQuery(list.uri),
    sequenceNumber: list.sequenceNumber,
  }));
  return { subject, fingerprint, anchor, ...(listEntries.length > 0 && { listed: listEntries }) };
}
