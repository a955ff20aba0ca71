import { parseCertificate } from '../../domain/formats/der/certificate.ts';
import { parsePemCertificates } from '../../domain/formats/der/pem.ts';
import { withoutQuery } from '../../domain/shared/without-query.ts';
import type { AffectedConfigurations, Ending } from '../../domain/trust-lists/forecast.ts';
import type { StoredListSummary } from '../../domain/trust-lists/stored-list.ts';
import { copyIdOf } from '../trust-lists/list-copies.ts';
import { type PinnedSigners, pinSigners, thumbprintOf } from '../trust-lists/verify-trust-list.ts';
import type { ForecastSubject } from './forecast-subject.ts';

/** Limit of external certificates per forecast; those of further configurations are left out. */
const MAX_CERTIFICATES = 2_000;
/** Number of certificates that are parsed before other requests run. */
const BATCH = 50;

/** External lists with the expiry of their good copies. A list that was never fetched has no expiry yet. */
export function endingFollowedLists(subject: ForecastSubject): readonly Ending[] {
  const uses = usesOf(subject);
  return subject.followed.flatMap(({ id, place, endsAt, held }): Ending[] => {
    if (endsAt === null) return [];
    const matchingUses = uses.filter((use) => use.id === id || (place.via !== undefined && place.via === use.followed));
    if (matchingUses.length === 0) return [];
    return [
      {
        kind: 'followed-list',
        id,
        name: withoutQuery(place.uri),
        endsAt,
        renews: held === null,
        affects: {
          issuance: matchingUses.flatMap(({ affects }) => affects.issuance),
          presentation: matchingUses.flatMap(({ affects }) => affects.presentation),
        },
        advice: adviceOf(held),
      },
    ];
  });
}

function adviceOf(held: StoredListSummary['held']): string {
  if (held === null) return 'none while its operator publishes newer lists: they are fetched regularly';
  if (held.signer !== undefined)
    return 'compare the fingerprint of the new signer with what the operator published, and confirm it: POST /trust/lists/{id}/confirm-signer';
  return `ask the operator for a valid version: ${held.reason}`;
}

type Use = { readonly id: string; readonly followed: string | undefined; readonly affects: AffectedConfigurations };

function usesOf({ presentations, credentials, wallets }: ForecastSubject): readonly Use[] {
  // Thousands of configurations may use one list with the same signers.
  const signersByPems = new Map<string, PinnedSigners>();
  const idOf = (uri: string, pems: readonly string[]) => {
    const name = pems.join('');
    const signers = signersByPems.get(name) ?? pinSigners(pems);
    signersByPems.set(name, signers);
    return copyIdOf(uri, signers);
  };
  const presentationUses = presentations.flatMap(({ id, trustAnchors = [] }) =>
    trustAnchors.flatMap((anchor): Use[] => {
      if (!('trustList' in anchor)) return [];
      const { trustList: uri, signedBy = [], follow } = anchor;
      const followed = follow === undefined ? undefined : uri;
      return [{ id: idOf(uri, signedBy), followed, affects: { issuance: [], presentation: [id] } }];
    }),
  );
  const issuance = credentials.map(({ id }) => id);
  const issuanceUses = wallets.lists.map((uri): Use => {
    const affects = { issuance, presentation: [] };
    return { id: idOf(uri, wallets.signers), followed: undefined, affects };
  });
  return [...presentationUses, ...issuanceUses];
}

/** External certificates in configurations: anchors, and signers of lists. */
export async function endingCertificates(subject: ForecastSubject): Promise<readonly Ending[]> {
  const { presentations, credentials, wallets } = subject;
  const anchorPems = presentations.flatMap(({ id, trustAnchors = [] }) =>
    trustAnchors.flatMap((anchor): PemUse[] => {
      const affects = { issuance: [], presentation: [id] };
      if ('certificate' in anchor) return [{ pem: anchor.certificate, kind: 'anchor', affects, advice: NEXT_ISSUER }];
      const { signedBy = [] } = 'trustList' in anchor ? anchor : {};
      return signedBy.map((pem) => ({ pem, kind: 'list-signer', affects, advice: nextSigner('signedBy') }));
    }),
  );
  const issuance = credentials.map(({ id }) => id);
  const walletPems = wallets.signers.map(
    (pem): PemUse => ({
      pem,
      kind: 'list-signer',
      affects: { issuance, presentation: [] },
      advice: nextSigner('walletProviderTrustListCertificates'),
    }),
  );
  const certificatesByPem = new Map<string, readonly ParsedCertificate[]>();
  const endings: Ending[] = [];
  for (const pemUse of [...walletPems, ...anchorPems]) {
    if (!certificatesByPem.has(pemUse.pem)) {
      if (certificatesByPem.size >= MAX_CERTIFICATES) continue;
      certificatesByPem.set(pemUse.pem, parseCertificates(pemUse.pem));
      if (certificatesByPem.size % BATCH === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    for (const certificate of certificatesByPem.get(pemUse.pem) ?? []) endings.push(endingOf({ ...pemUse, ...certificate }));
  }
  return endings;
}

type PemUse = Pick<CertificateUse, 'pem' | 'kind' | 'affects' | 'advice'>;
type ParsedCertificate = { readonly fingerprint: string; readonly subject: string; readonly notAfter: Date };
type CertificateUse = ParsedCertificate & {
  readonly pem: string;
  readonly kind: 'anchor' | 'list-signer';
  readonly affects: AffectedConfigurations;
  readonly advice: string;
};

const NEXT_ISSUER = 'request the next certificate from the issuer, and add it to trustAnchors';
const nextSigner = (member: 'signedBy' | 'walletProviderTrustListCertificates') =>
  `request the next signer from the operator of the list, and add its certificate to ${member}`;

function parseCertificates(pem: string): readonly ParsedCertificate[] {
  return (parsePemCertificates(pem, 10) ?? []).flatMap((certificate) => {
    const parsed = parseCertificate(Buffer.from(certificate, 'base64'));
    if (parsed === undefined) return [];
    return [{ fingerprint: thumbprintOf(certificate), subject: parsed.subjectText, notAfter: parsed.notAfter }];
  });
}

function endingOf({ kind, fingerprint, subject, notAfter, affects, advice }: CertificateUse): Ending {
  return { kind, id: fingerprint, name: subject, endsAt: notAfter, renews: false, affects, advice };
}

/** Published lists of the tenant, which are renewed as long as their key chain is valid. */
export function endingPublishedLists({ published, chains }: ForecastSubject): readonly Ending[] {
  return published.map(({ id, description, nextUpdate, signedBy }): Ending => {
    const chain = chains.find((candidate) => candidate.id === signedBy);
    const renews = chain !== undefined && chain.active.notAfter > nextUpdate;
    return {
      kind: 'published-list',
      id,
      name: description ?? id,
      endsAt: nextUpdate,
      renews,
      affects: { issuance: [], presentation: [] },
      advice: renews
        ? 'none: it is signed again before that time'
        : 'set a key chain that expires later: readers then reject all entries of the list',
    };
  });
}
