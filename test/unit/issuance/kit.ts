import { MasterCipher } from '../../../adapters/crypto/cipher.ts';
import { X509Authority } from '../../../adapters/crypto/x509-authority.ts';
import { KmsRegistry } from '../../../adapters/kms/kms-registry.ts';
import { LocalKms } from '../../../adapters/kms/local/local-kms.ts';
import { NodeRandom } from '../../../adapters/system/random.ts';
import { CredentialFactory } from '../../../application/issuance/credential-factory.ts';
import { createKeyChain } from '../../../application/keys/create-key-chain.ts';
import { Clock } from '../../../application/ports/clock.ts';
import type { TenantConfiguration } from '../../../application/tenant-cache/tenant-configuration.ts';
import { type CredentialConfiguration, CredentialConfigurationBody } from '../../../domain/issuance/configuration.ts';
import { type EffectiveIssuance, effectiveIssuance, IssuanceConfigurationBody } from '../../../domain/issuance/issuance-configuration.ts';
import type { KeyChain } from '../../../domain/keys/key-chain.ts';
import type { SigningAlgorithm } from '../../../domain/shared/jwk.ts';
import { NO_ORGANIZATION } from '../../../domain/tenants/organization.ts';
import { newKey } from '../../support/raw-wallet.ts';

export const ISSUER = 'https://issuer.example/acme';
export const DISPLAY = [{ name: 'Card', locale: 'en' }];

class SetClock extends Clock {
  time = new Date('2026-06-01T12:34:56.789Z');

  override now(): Date {
    return this.time;
  }
}

/** Creates a configuration with `changes`. Throws if the schema rejects it. */
export function aConfiguration(changes: Readonly<Record<string, unknown>> = {}): CredentialConfiguration {
  const body = CredentialConfigurationBody.parse({ id: 'card', config: { format: 'dc+sd-jwt', display: DISPLAY }, ...changes });
  const time = new Date('2026-01-01T00:00:00Z');
  return { ...body, createdAt: time, updatedAt: time };
}

export const MDL = 'org.iso.18013.5.1.mDL';
export const MDL_NAMESPACE = 'org.iso.18013.5.1';

export function anMdoc(
  config: Readonly<Record<string, unknown>> = {},
  changes: Readonly<Record<string, unknown>> = {},
): CredentialConfiguration {
  const fullConfig = { format: 'mso_mdoc', display: DISPLAY, docType: MDL, ...config };
  return aConfiguration({ id: 'mdl', config: fullConfig, ...changes });
}

export function anIssuance(changes: Readonly<Record<string, unknown>> = {}): EffectiveIssuance {
  const display = [{ name: 'Acme', locale: 'en' }];
  return effectiveIssuance(IssuanceConfigurationBody.parse({ display, ...changes }), null);
}

/** Returns the paths of the problems of a configuration. */
export function findProblemPaths(body: object): readonly string[] {
  const parsed = CredentialConfigurationBody.safeParse({ id: 'card', ...body });
  return parsed.error?.issues.map(({ path }) => path.map(String).join('.')) ?? [];
}

/** Creates a factory with real keys and certificates, without a database. */
export async function aFactory(algorithm: SigningAlgorithm = 'ES256', country?: string) {
  const random = new NodeRandom();
  const cipher = new MasterCipher({ masterSecrets: ['a master secret of decent length'] });
  const provider = new LocalKms({ name: 'local', cipher, random });
  const kms = new KmsRegistry({ providers: [{ name: 'local', type: 'local', provider }], default: 'local' });
  const clock = new SetClock();
  const ports = { kms, random, clock, certificateAuthority: new X509Authority({ kms, random }) };
  const chain = await createKeyChain(ports, {
    tenantId: 'acme',
    usages: ['signing'],
    subjectName: 'Acme',
    publicUrl: 'https://issuer.example',
    certificateSubject: NO_ORGANIZATION,
    algorithm,
    ...(country !== undefined && { country }),
  });
  const factory = new CredentialFactory({ kms, random, clock });
  const make = async (
    configuration: CredentialConfiguration,
    claims: Parameters<CredentialFactory['create']>[2],
    overrides: { chain?: KeyChain; status?: { idx: number; uri: string }; holderKey?: undefined } = {},
  ) => {
    const instance = { holderKey: newKey().jwk, ...overrides } as never;
    const [credential = ''] = await factory.create(aTenantView(overrides.chain ?? chain), configuration, claims, [instance]);
    return credential;
  };
  return { factory, clock, chain, kms, make };
}

/** Creates the tenant configuration that the factory needs: key chains and a cache. */
export function aTenantView(...chains: readonly KeyChain[]): TenantConfiguration {
  const derived = new Map<string, unknown>();
  const derive = <T>(key: string, compute: () => T): T => {
    if (!derived.has(key)) derived.set(key, compute());
    return derived.get(key) as T;
  };
  const view = {
    tenantId: 'acme',
    issuer: 'https://issuer.example/acme',
    keyChains: async () => chains,
    derive,
    deriveOf: <T>(_document: object, key: string, compute: () => T): T => derive(key, compute),
  };
  return view as unknown as TenantConfiguration;
}
