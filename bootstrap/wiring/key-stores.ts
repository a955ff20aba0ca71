import { CheckedSignatures } from '../../adapters/kms/checked-signatures.ts';
import type { KmsProvider, NamedProvider } from '../../adapters/kms/kms-provider.ts';
import { KmsRegistry } from '../../adapters/kms/kms-registry.ts';
import { LocalKms } from '../../adapters/kms/local/local-kms.ts';
import type { Cipher } from '../../application/ports/cipher.ts';
import type { Probe } from '../../application/ports/probe.ts';
import type { Random } from '../../application/ports/random.ts';
import type { RequestSlots } from '../../application/ports/request-slots.ts';
import type { Signatures } from '../../application/ports/signatures.ts';
import type { KmsConfig } from '../../config/kms-config.ts';
import { SettingsError } from '../../config/settings.ts';

type Ports = {
  readonly cipher: Cipher;
  readonly random: Random;
  readonly signatures: Signatures;
  /** Undefined when no requests are served. */
  readonly requestSlots?: RequestSlots;
};

export type KeyStores = {
  readonly kms: KmsRegistry;
  readonly probes: readonly Probe[];
  /** Fails when no provider can sign. An unreachable provider of one tenant does not affect other tenants. */
  readonly anyProbe: Probe;
  close(): Promise<void>;
};

/**
 * Opens the key providers that the configuration names. A provider that does not answer does not prevent the start: only its tenants wait
 * for it.
 * @throws SettingsError with every provider that could never work as configured.
 */
export async function openKeyStores(config: KmsConfig, ports: Ports): Promise<KeyStores> {
  const openedProviders: NamedProvider[] = [];
  const faults: string[] = [];
  const close = async () => {
    for (const { provider } of openedProviders) await provider.close();
  };
  for (const [name, settings] of Object.entries(config.providers)) {
    try {
      const { type, onlyFor } = settings;
      const provider = await openProvider(name, settings, ports);
      openedProviders.push({ name, type, provider, ...(onlyFor !== undefined && { onlyFor }) });
    } catch (error) {
      faults.push(`KMS_CONFIG: providers.${name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  if (faults.length > 0) {
    await close();
    throw new SettingsError(faults);
  }
  const kms = new KmsRegistry({ providers: openedProviders, default: config.default, tenantDefaults: config.tenants });
  const probes = openedProviders
    .filter(({ type }) => type !== 'local')
    .map(({ name }) => ({ name: `key-provider/${name}`, isPartial: true as const, check: () => kms.assertReachable(name) }));
  const anyProbe = {
    name: 'keys',
    async check() {
      if (openedProviders.some(({ type }) => type === 'local')) return;
      await Promise.any(openedProviders.map(({ name }) => kms.assertReachable(name)));
    },
  };
  return { kms, probes, anyProbe, close };
}

/** Each type of provider is loaded only when it is configured. */
async function openProvider(
  name: string,
  settings: KmsConfig['providers'][string],
  { cipher, random, signatures, requestSlots }: Ports,
): Promise<KmsProvider> {
  switch (settings.type) {
    case 'local':
      return new LocalKms({ name, cipher, random });
    case 'vault': {
      const { VaultKms } = await import('../../adapters/kms/vault/vault-kms.ts');
      const provider = new VaultKms({ name, settings, random });
      return new CheckedSignatures({ name, provider, signatures, requestSlots });
    }
    case 'pkcs11': {
      const { Pkcs11Kms } = await import('../../adapters/kms/pkcs11/pkcs11-kms.ts');
      const provider = await Pkcs11Kms.open({ name, settings, random });
      return new CheckedSignatures({ name, provider, signatures, requestSlots });
    }
  }
}
