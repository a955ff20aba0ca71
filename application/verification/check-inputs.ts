import type { CompiledCredentialQuery } from '../../domain/dcql/compile.ts';
import type { Refusal } from '../../domain/shared/refusal.ts';
import { withoutQuery } from '../../domain/shared/without-query.ts';
import type { StatusReference } from '../../domain/status-lists/reference.ts';
import type { Binding } from '../../domain/verification/binding.ts';
import type { PresentedIssuer } from '../../domain/verification/presented-issuer.ts';
import type { CheckInputs } from '../../domain/verification/report.ts';
import type { ChainVerdict } from '../ports/certificates.ts';
import type { IssuerTrust } from './issuer-trust.ts';

type Task = { readonly trust: IssuerTrust; readonly binding: Binding; readonly now: Date };
type Verified = { readonly issuer: Extract<ChainVerdict, { trusted: true }>; readonly statusReference: StatusReference | undefined };

/** What is known before the presentation is opened. */
export function requestInputs({ trust, binding, now }: Task, { format, types }: CompiledCredentialQuery): CheckInputs {
  const { anchors, lists } = trust;
  return {
    form: format,
    'issuer trust': `${anchors.length} anchors, of ${lists.length} trust lists and the configuration`,
    'validity period': now.toISOString(),
    'key binding': [binding.audience].flat().join(' '),
    query: [...types].join(' '),
  };
}

/** What is known once it holds. */
export function credentialInputs({ trust }: Pick<Task, 'trust'>, { issuer, statusReference }: Verified): CheckInputs {
  const listings = trust.listed.get(issuer.anchor)?.listings ?? [];
  const sources = listings.map(({ entity, list }) => `${entity.name} on ${withoutQuery(list.uri)} number ${list.sequenceNumber}`);
  return {
    'issuer trust': `${issuer.subject} under the anchor ${issuer.anchor} (${sources.length === 0 ? 'configured' : sources.join(', ')})`,
    // The index tells credentials apart, which is nobody's business once this one is refused.
    status: statusReference === undefined ? 'none' : withoutQuery(statusReference.uri),
  };
}

/** An issuer that nobody vouches for may well stand on the list that could not be had. */
export function detailOf({ reason, message }: Refusal, { missing }: IssuerTrust): string {
  if (reason !== 'untrusted_chain' || missing.length === 0) return message;
  return `${message}; trust lists that could not be used: ${missing.join('; ')}`;
}

/** Who signed, for backends and operators, with the trust lists that vouch for them. */
export function issuerOf({ trust }: Pick<Task, 'trust'>, { issuer }: Verified): PresentedIssuer {
  const { subject, fingerprint, anchor } = issuer;
  const listings = trust.listed.get(anchor)?.listings ?? [];
  const listed = listings.map(({ entity, list }) => ({
    entity: entity.name,
    list: withoutQuery(list.uri),
    sequenceNumber: list.sequenceNumber,
  }));
  return { subject, fingerprint, anchor, ...(listed.length > 0 && { listed }) };
}
