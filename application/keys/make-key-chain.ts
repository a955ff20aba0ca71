import { caValidity, commonNames, DEFAULT_CERT_VALIDITY_DAYS, leafValidity } from '../../domain/keys/certificate-profile.ts';
import type { KeyChain, KeyLeaf, KeyRoot, KeyUsage } from '../../domain/keys/key-chain.ts';
import { assertRotationFits, DEFAULT_ROTATION_DAYS, type RotationSettings } from '../../domain/keys/rotation.ts';
import { type StoredKey, signingKey } from '../../domain/keys/signing-key.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { SigningAlgorithm } from '../../domain/shared/jwk.ts';
import type { PortsOf } from '../needs.ts';
import { CertificateAuthority } from '../ports/certificate-authority.ts';
import { Clock } from '../ports/clock.ts';
import { Kms, type PrivateKeyMaterial } from '../ports/kms.ts';
import { Random } from '../ports/random.ts';
import { type CertificateHolder, certifyLeaf, issuerMembers } from './certify-leaf.ts';

export const MAKING = { kms: Kms, certificateAuthority: CertificateAuthority, random: Random, clock: Clock };
type Ports = PortsOf<typeof MAKING>;

export type NewKeyChain = Partial<RotationSettings> & {
  readonly tenantId: string;
  readonly id?: string;
  readonly description?: string;
  readonly usages: readonly KeyUsage[];
  readonly algorithm?: SigningAlgorithm;
  /** KMS provider of both keys. Absent: the tenant's, else the default one. */
  readonly provider?: string;
  readonly subjectName: string;
  /** ISO 3166-1 alpha-2; it and the organization stand in the CA, and in each leaf of it. */
  readonly country?: string;
  readonly organization?: string;
  /** Address that wallets see; its host becomes the leaf's subject alternative name. */
  readonly publicUrl: string;
  readonly holder: CertificateHolder;
  /** A key that was made elsewhere; otherwise one is made. */
  readonly leafKey?: PrivateKeyMaterial;
  /** How the key is certified; by a CA of its own unless stated. */
  readonly certification?:
    | { readonly by: 'root'; readonly root: KeyRoot }
    | { readonly by: 'itself' }
    | ({ readonly by: 'others' } & Pick<KeyLeaf, 'certificates' | 'notAfter'>);
};

/**
 * Makes an internal CA and a leaf that it certifies. A self-signed leaf would be simpler, but HAIP 1.0 section 6.1.1
 * refuses one, and the anchor that others configure would change with each rotation.
 * @throws Failure `invalid_input` before any key is made: an external KMS would keep the keys of a refused request.
 */
export async function makeKeyChain(ports: Ports, wanted: NewKeyChain): Promise<KeyChain> {
  const now = ports.clock.now();
  const settings: RotationSettings = {
    rotationEnabled: wanted.rotationEnabled ?? false,
    rotationIntervalDays: wanted.rotationIntervalDays ?? DEFAULT_ROTATION_DAYS,
    certValidityDays: wanted.certValidityDays ?? DEFAULT_CERT_VALIDITY_DAYS,
  };
  assertRotationFits(settings);
  leafValidity(now, settings.certValidityDays, caValidity(now).notAfter);

  const { root, active } = await certified(ports, wanted, settings.certValidityDays, now);
  return {
    id: wanted.id ?? ports.random.token(),
    tenantId: wanted.tenantId,
    ...defined({ description: wanted.description, root }),
    usages: wanted.usages,
    kmsProvider: active.key.handle.kms,
    active,
    ...settings,
    createdAt: now,
    updatedAt: now,
  };
}

async function certified(
  ports: Ports,
  wanted: NewKeyChain,
  days: number,
  now: Date,
): Promise<{ readonly root?: KeyRoot; readonly active: KeyLeaf }> {
  const { certificateAuthority } = ports;
  const { certification } = wanted;
  if (certification?.by === 'others') {
    const { certificates, notAfter } = certification;
    return { active: { key: await makeKey(ports, wanted), certificates, notAfter } };
  }
  if (certification?.by === 'itself') return { active: await makeSelfSigned(ports, wanted, days, now) };
  const root = certification?.root ?? (await makeRoot(ports, wanted, now));
  const key = await makeKey(ports, wanted);
  const validity = leafValidity(now, days, root.notAfter);
  return { root, active: await certifyLeaf(certificateAuthority, { ...wanted, key, root, ...validity }) };
}

function makeKey({ kms }: Ports, wanted: NewKeyChain): Promise<StoredKey> {
  const { tenantId, algorithm = 'ES256', provider, leafKey } = wanted;
  return leafKey === undefined ? kms.generate(tenantId, algorithm, provider) : kms.import(tenantId, leafKey, provider);
}

async function makeRoot(ports: Ports, wanted: NewKeyChain, now: Date): Promise<KeyRoot> {
  const { tenantId, algorithm = 'ES256', provider, subjectName, country, organization } = wanted;
  const key = await ports.kms.generate(tenantId, algorithm, provider);
  const validity = caValidity(now);
  const certificate = await ports.certificateAuthority.issue(
    {
      kind: 'ca',
      subject: { commonName: commonNames(subjectName).ca, ...defined({ country, organization }) },
      publicJwk: key.publicJwk,
      ...validity,
      ...issuerMembers(wanted, key.publicJwk),
    },
    { key: signingKey(tenantId, key) },
  );
  return { key, certificate, notAfter: validity.notAfter };
}

async function makeSelfSigned(ports: Ports, wanted: NewKeyChain, days: number, now: Date): Promise<KeyLeaf> {
  const { country, organization } = wanted;
  const key = await makeKey(ports, wanted);
  const validity = leafValidity(now, days, caValidity(now).notAfter);
  const certificate = await ports.certificateAuthority.issue(
    {
      kind: 'leaf',
      subject: { commonName: commonNames(wanted.subjectName).leaf, ...defined({ country, organization }) },
      publicJwk: key.publicJwk,
      dnsNames: [new URL(wanted.publicUrl).hostname],
      ...validity,
    },
    { key: signingKey(wanted.tenantId, key) },
  );
  return { key, certificates: [certificate], notAfter: validity.notAfter };
}
