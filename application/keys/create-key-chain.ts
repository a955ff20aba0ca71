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
import { certifyLeaf, issuerFields, type SubjectOrganization } from './certify-leaf.ts';

export const KEY_CREATION_PORTS = { kms: Kms, certificateAuthority: CertificateAuthority, random: Random, clock: Clock };
type Ports = PortsOf<typeof KEY_CREATION_PORTS>;

export type NewKeyChain = Partial<RotationSettings> & {
  readonly tenantId: string;
  readonly id?: string;
  readonly description?: string;
  readonly usages: readonly KeyUsage[];
  readonly algorithm?: SigningAlgorithm;
  /** KMS provider of both keys. Absent: that of the tenant, otherwise the default one. */
  readonly provider?: string;
  readonly subjectName: string;
  /** ISO 3166-1 alpha-2; contained with the organization in the CA certificate, and in each leaf of it. */
  readonly country?: string;
  readonly organization?: string;
  /** Public address; its host becomes the leaf's subject alternative name. */
  readonly publicUrl: string;
  readonly certificateSubject: SubjectOrganization;
  /** An existing key to import; otherwise one is generated. */
  readonly leafKey?: PrivateKeyMaterial;
  /** The issuer of the certificate; by default a new internal CA. */
  readonly certification?:
    | { readonly by: 'root'; readonly root: KeyRoot }
    | { readonly by: 'self' }
    | ({ readonly by: 'external-ca' } & Pick<KeyLeaf, 'certificates' | 'notAfter'>);
};

/**
 * Creates an internal CA and a leaf that it certifies. A self-signed leaf would be simpler, but HAIP 1.0 section 6.1.1
 * rejects one, and the anchor that others configure would change with each rotation.
 * @throws Failure `invalid_input` before any key is generated: an external KMS would keep the keys of a rejected request.
 */
export async function createKeyChain(ports: Ports, request: NewKeyChain): Promise<KeyChain> {
  const now = ports.clock.now();
  const settings: RotationSettings = {
    rotationEnabled: request.rotationEnabled ?? false,
    rotationIntervalDays: request.rotationIntervalDays ?? DEFAULT_ROTATION_DAYS,
    certValidityDays: request.certValidityDays ?? DEFAULT_CERT_VALIDITY_DAYS,
  };
  assertRotationFits(settings);
  leafValidity(now, settings.certValidityDays, caValidity(now).notAfter);

  const { root, active } = await createLeaf(ports, request, settings.certValidityDays, now);
  return {
    id: request.id ?? ports.random.token(),
    tenantId: request.tenantId,
    ...defined({ description: request.description, root }),
    usages: request.usages,
    kmsProvider: active.key.handle.kms,
    active,
    ...settings,
    createdAt: now,
    updatedAt: now,
  };
}

async function createLeaf(
  ports: Ports,
  request: NewKeyChain,
  days: number,
  now: Date,
): Promise<{ readonly root?: KeyRoot; readonly active: KeyLeaf }> {
  const { certificateAuthority } = ports;
  const { certification } = request;
  if (certification?.by === 'external-ca') {
    const { certificates, notAfter } = certification;
    return { active: { key: await createKey(ports, request), certificates, notAfter } };
  }
  if (certification?.by === 'self') return { active: await createSelfSigned(ports, request, days, now) };
  const root = certification?.root ?? (await createRoot(ports, request, now));
  const key = await createKey(ports, request);
  const validity = leafValidity(now, days, root.notAfter);
  return { root, active: await certifyLeaf(certificateAuthority, { ...request, key, root, ...validity }) };
}

function createKey({ kms }: Ports, request: NewKeyChain): Promise<StoredKey> {
  const { tenantId, algorithm = 'ES256', provider, leafKey } = request;
  return leafKey === undefined ? kms.generate(tenantId, algorithm, provider) : kms.import(tenantId, leafKey, provider);
}

async function createRoot(ports: Ports, request: NewKeyChain, now: Date): Promise<KeyRoot> {
  const { tenantId, algorithm = 'ES256', provider, subjectName, country, organization } = request;
  const key = await ports.kms.generate(tenantId, algorithm, provider);
  const validity = caValidity(now);
  const certificate = await ports.certificateAuthority.issue(
    {
      kind: 'ca',
      subject: { commonName: commonNames(subjectName).ca, ...defined({ country, organization }) },
      publicJwk: key.publicJwk,
      ...validity,
      ...issuerFields(request, key.publicJwk),
    },
    { key: signingKey(tenantId, key) },
  );
  return { key, certificate, notAfter: validity.notAfter };
}

async function createSelfSigned(ports: Ports, request: NewKeyChain, days: number, now: Date): Promise<KeyLeaf> {
  const { country, organization } = request;
  const key = await createKey(ports, request);
  const validity = leafValidity(now, days, caValidity(now).notAfter);
  const certificate = await ports.certificateAuthority.issue(
    {
      kind: 'leaf',
      subject: { commonName: commonNames(request.subjectName).leaf, ...defined({ country, organization }) },
      publicJwk: key.publicJwk,
      dnsNames: [new URL(request.publicUrl).hostname],
      ...validity,
    },
    { key: signingKey(request.tenantId, key) },
  );
  return { key, certificates: [certificate], notAfter: validity.notAfter };
}
