import { DerError } from '../../domain/formats/der/reader.ts';
import { revocationSourcesOf } from '../../domain/formats/der/revocation-sources.ts';
import { ownRevocationListOf } from '../../domain/keys/authority-address.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { type PublicJwk, thumbprint } from '../../domain/shared/jwk.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import { compromisedKeysOf } from '../keys/compromised-key.ts';
import type { ServiceSettings } from '../ports/settings.ts';
import type { TenantConfiguration } from '../tenant-configuration.ts';
import type { TenantConfigurations } from '../tenant-configurations.ts';

type Ports = {
  readonly tenantConfigurations: TenantConfigurations;
  readonly settings: Pick<ServiceSettings, 'publicUrl'>;
};

type Signer = {
  /** DER in standard base64, leaf first. */
  readonly chain: readonly string[];
  readonly key: PublicJwk;
  /** What the report calls it. */
  readonly name: string;
};

/**
 * Rejects what a compromised key of the verifying tenant signed, or of the tenant of this service whose authority issued
 * the certificate. `certificateRevocation` does not matter: no list has to be fetched to know it.
 * @throws Refusal `certificate_revoked`.
 */
export async function assertSignerNotCompromised(
  { tenantConfigurations, settings }: Ports,
  configured: TenantConfiguration,
  { chain, key, name }: Signer,
): Promise<void> {
  const id = thumbprint(key);
  const others = issuersOf(chain[0] ?? '', settings.publicUrl).filter(
    (other) => other !== configured.tenantId,
  );
  const owners = await Promise.all(others.map((other) => tenantConfigurations.stored(other)));
  for (const owner of [configured, ...owners]) {
    const since = owner === undefined ? undefined : (await compromisedKeysOf(owner)).get(id);
    if (since === undefined) continue;
    throw new Refusal('certificate_revoked', `${name}: keyCompromise since ${since.toISOString()}`);
  }
}

/** A certificate of an internal authority names its revocation list, which is at an address of this service. */
function issuersOf(certificate: string, publicUrl: string): readonly TenantId[] {
  try {
    const addresses = revocationSourcesOf(certificate).points.flat();
    const tenants = addresses.flatMap((uri) => ownRevocationListOf(uri, publicUrl)?.tenantId ?? []);
    return [...new Set(tenants)].slice(0, 1);
  } catch (error) {
    if (!(error instanceof DerError)) throw error;
    return [];
  }
}
