import { parseCertificate } from '../../domain/formats/der/certificate.ts';
import { parsePemCertificates } from '../../domain/formats/der/pem.ts';
import { withoutQuery } from '../../domain/shared/without-query.ts';
import type { Affected, Ending } from '../../domain/trust-lists/forecast.ts';
import type { KeptListSummary } from '../../domain/trust-lists/kept-list.ts';
import { copyIdOf } from '../trust-lists/list-copies.ts';
import { type PinnedSigners, pinSigners, thumbprintOf } from '../trust-lists/verify-trust-list.ts';
import type { ForecastSubject } from './forecast-subject.ts';

/** Certificates of others that one forecast looks at; those of further configurations are left out. */
const MAX_CERTIFICATES = 2_000;
/** Those that are read without letting others have their turn. */
const AT_ONCE = 50;

/** Lists of others, until when their good copies may be used. One that was never looked at has no end yet. */
export function endingFollowedLists(subject: ForecastSubject): readonly Ending[] {
  const uses = usesOf(subject);
  return subject.followed.flatMap(({ id, place, endsAt, held }): Ending[] => {
    if (endsAt === null) return [];
    const found = uses.filter((use) => use.id === id || (place.via !== undefined && place.via === use.followed));
    if (found.length === 0) return [];
    return [
      {
        kind: 'followed-list',
        id,
        name: withoutQuery(place.uri),
        endsAt,
        renews: held === null,
        affects: {
          issuance: found.flatMap(({ affects }) => affects.issuance),
          presentation: found.flatMap(({ affects }) => affects.presentation),
        },
        advice: adviceOf(held),
      },
    ];
  });
}

function adviceOf(held: KeptListSummary['held']): string {
  if (held === null) return 'nothing, as long as its operator publishes a newer one: it is looked for all the time';
  if (held.signer !== undefined)
    return 'compare the fingerprint of the new signer with what the operator published, and confirm it: POST /trust/lists/{id}/confirm-signer';
  return `ask the operator for a right release: ${held.reason}`;
}

type Use = {
  readonly id: string;
  /** The list of lists whose pointers count here. */
  readonly followed: string | undefined;
  readonly affects: Affected;
};

function usesOf({ presentations, credentials, wallets }: ForecastSubject): readonly Use[] {
  // Thousands of configurations may name one list under the same signers.
  const known = new Map<string, PinnedSigners>();
  const idOf = (uri: string, pems: readonly string[]) => {
    const name = pems.join('');
    const signers = known.get(name) ?? pinSigners(pems);
    known.set(name, signers);
    return copyIdOf(uri, signers);
  };
  const asking = presentations.flatMap(({ id, trustAnchors = [] }) =>
    trustAnchors.flatMap((anchor): Use[] => {
      if (!('trustList' in anchor)) return [];
      const { trustList: uri, signedBy = [], follow } = anchor;
      const followed = follow === undefined ? undefined : uri;
      return [{ id: idOf(uri, signedBy), followed, affects: { issuance: [], presentation: [id] } }];
    }),
  );
  const issuance = credentials.map(({ id }) => id);
  const issuing = wallets.lists.map((uri): Use => {
    const affects = { issuance, presentation: [] };
    return { id: idOf(uri, wallets.signers), followed: undefined, affects };
  });
  return [...asking, ...issuing];
}

/** Certificates of others on which configurations rest: anchors, and who signs lists. */
export async function endingCertificates(subject: ForecastSubject): Promise<readonly Ending[]> {
  const { presentations, credentials, wallets } = subject;
  const named = presentations.flatMap(({ id, trustAnchors = [] }) =>
    trustAnchors.flatMap((anchor): NamedPem[] => {
      const affects = { issuance: [], presentation: [id] };
      if ('certificate' in anchor) return [{ pem: anchor.certificate, kind: 'anchor', affects, advice: NEXT_ISSUER }];
      const { signedBy = [] } = 'trustList' in anchor ? anchor : {};
      return signedBy.map((pem) => ({ pem, kind: 'list-signer', affects, advice: nextSigner('signedBy') }));
    }),
  );
  const issuance = credentials.map(({ id }) => id);
  const ofWallets = wallets.signers.map(
    (pem): NamedPem => ({
      pem,
      kind: 'list-signer',
      affects: { issuance, presentation: [] },
      advice: nextSigner('walletProviderTrustListCertificates'),
    }),
  );
  const known = new Map<string, readonly Read[]>();
  const endings: Ending[] = [];
  for (const one of [...ofWallets, ...named]) {
    if (!known.has(one.pem)) {
      if (known.size >= MAX_CERTIFICATES) continue;
      known.set(one.pem, read(one.pem));
      if (known.size % AT_ONCE === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    for (const certificate of known.get(one.pem) ?? []) endings.push(endingOf({ ...one, ...certificate }));
  }
  return endings;
}

type NamedPem = Pick<Named, 'pem' | 'kind' | 'affects' | 'advice'>;
type Read = { readonly fingerprint: string; readonly subject: string; readonly notAfter: Date };
type Named = Read & { readonly pem: string; readonly kind: 'anchor' | 'list-signer'; readonly affects: Affected; readonly advice: string };

const NEXT_ISSUER = 'ask the issuer for its next certificate, and name it in trustAnchors beside this one';
const nextSigner = (member: 'signedBy' | 'walletProviderTrustListCertificates') =>
  `ask the operator of the list who signs it then, and name that certificate in ${member} beside this one`;

function read(pem: string): readonly Read[] {
  return (parsePemCertificates(pem, 10) ?? []).flatMap((certificate) => {
    const parsed = parseCertificate(Buffer.from(certificate, 'base64'));
    if (parsed === undefined) return [];
    return [{ fingerprint: thumbprintOf(certificate), subject: parsed.subjectText, notAfter: parsed.notAfter }];
  });
}

function endingOf({ kind, fingerprint, subject, notAfter, affects, advice }: Named): Ending {
  return { kind, id: fingerprint, name: subject, endsAt: notAfter, renews: false, affects, advice };
}

/** Lists of the tenant, which sign themselves anew as long as their key chain lasts. */
export function endingPublishedLists({ published, chains }: ForecastSubject): readonly Ending[] {
  return published.map(({ id, description, nextUpdate, signedBy }): Ending => {
    const chain = chains.find((one) => one.id === signedBy);
    const renews = chain !== undefined && chain.active.notAfter > nextUpdate;
    return {
      kind: 'published-list',
      id,
      name: description ?? id,
      endsAt: nextUpdate,
      renews,
      affects: { issuance: [], presentation: [] },
      advice: renews
        ? 'nothing: it is signed anew before that'
        : 'give it a key chain that lasts: whoever reads it takes nobody on it any more then',
    };
  });
}
