import { readCertificate } from '../formats/der/certificate.ts';
import type { TrustedEntity, TrustedService, TrustList } from './lote.ts';

/** Which services vouch for something. Types are compared letter by letter. */
export type TrustPurpose = {
  readonly issuance: readonly string[];
  /** Services that may sign what is said about revocation by the same entity. */
  readonly revocation: readonly string[];
  /** Values of `ServiceStatus` that let a service count; one without a status always does. */
  readonly statuses: readonly string[];
};

const SERVICE_TYPE = 'http://uri.etsi.org/19602/SvcType';

/** Who attests wallets and their keys. Lists of wallet providers carry no status (TS 119 602 annex E). */
export const WALLET_PROVIDERS: TrustPurpose = {
  issuance: [`${SERVICE_TYPE}/WalletSolution/Issuance`, `${SERVICE_TYPE}/WalletProvider`],
  revocation: [`${SERVICE_TYPE}/WalletSolution/Revocation`],
  statuses: [],
};

export type SelectedCertificate = {
  /** SHA-256 of the DER, base64url. */
  readonly hash: string;
  /** DER in standard base64. */
  readonly certificate: string;
  readonly entity: Pick<TrustedEntity, 'id' | 'name' | 'country'>;
  /** Of the entity's revocation services, as `certificate`; undefined when it lists no such service. */
  readonly revocation: readonly string[] | undefined;
};

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** The certificates that vouch for something, in the order of the list. One that does not parse is passed over. */
export function selectCertificates(list: TrustList, purpose: TrustPurpose): readonly SelectedCertificate[] {
  const revocation = revocationByEntity(list, purpose);
  const selected: SelectedCertificate[] = [];
  for (const { id, name, country, services } of list.entities) {
    const entity = { id, name, country };
    for (const service of services.filter((each) => counts(each, purpose.issuance, purpose))) {
      for (const { certificate, hash } of readCertificates(service)) {
        selected.push({ hash, certificate, entity, revocation: revocation.get(id) });
      }
    }
  }
  return selected;
}

/** An entity whose revocation service does not count, or has no usable certificate, has nobody to revoke for it. */
function revocationByEntity(list: TrustList, purpose: TrustPurpose): ReadonlyMap<string, readonly string[]> {
  const certificates = new Map<string, string[]>();
  for (const { id, services } of list.entities) {
    for (const service of services.filter(({ type = '' }) => purpose.revocation.includes(type))) {
      const known = certificates.get(id) ?? [];
      certificates.set(id, known);
      if (!counts(service, purpose.revocation, purpose)) continue;
      known.push(...readCertificates(service).map(({ certificate }) => certificate));
    }
  }
  return certificates;
}

function counts({ type, status }: TrustedService, types: readonly string[], purpose: TrustPurpose): boolean {
  if (type === undefined || !types.includes(type)) return false;
  return status === undefined || purpose.statuses.includes(status);
}

function readCertificates({ certificates }: TrustedService) {
  return certificates.flatMap((certificate) => {
    const isBase64 = certificate.length % 4 === 0 && BASE64.test(certificate);
    const parsed = isBase64 ? readCertificate(Buffer.from(certificate, 'base64')) : undefined;
    return parsed === undefined ? [] : [{ certificate, hash: parsed.hash }];
  });
}
