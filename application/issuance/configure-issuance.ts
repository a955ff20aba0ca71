import {
  defaultIssuance,
  type IssuanceConfiguration,
  type IssuanceConfigurationBody,
} from '../../domain/issuance/issuance-configuration.ts';
import type { TenantCaller } from '../caller.ts';
import type { Clock } from '../ports/clock.ts';
import type { Store } from '../ports/store.ts';
import { requireKeyChain } from '../steps/require-key-chain.ts';

type Ports = { readonly store: Store; readonly clock: Clock };

/** Reads the tenant's issuance configuration; makes a default one when there is none. */
export class ReadIssuanceConfiguration {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  async execute({ tenantId, view }: TenantCaller): Promise<IssuanceConfiguration> {
    const known = await view.issuanceConfiguration();
    if (known !== undefined) return known;
    const now = this.#ports.clock.now();
    return this.#ports.store.forTenant(tenantId, async ({ tenant, issuanceConfiguration }) => {
      const existing = await issuanceConfiguration.find('default');
      if (existing !== undefined) return existing;
      const { name } = await tenant.get();
      const configuration: IssuanceConfiguration = {
        ...defaultIssuance(name),
        id: 'default',
        createdAt: now,
        updatedAt: now,
      };
      await issuanceConfiguration.put(configuration);
      return configuration;
    });
  }
}

/** Replaces the tenant's issuance configuration. */
export class WriteIssuanceConfiguration {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @throws Failure `invalid_input` when `signingKeyId` names no usable key chain. */
  async execute({ tenantId }: TenantCaller, body: IssuanceConfigurationBody): Promise<IssuanceConfiguration> {
    const now = this.#ports.clock.now();
    return this.#ports.store.forTenant(
      tenantId,
      async ({ issuanceConfiguration, keyChains }) => {
        requireKeyChain(await keyChains.list(), 'signing', body.signingKeyId, 'signingKeyId', now);
        const before = await issuanceConfiguration.find('default');
        const configuration: IssuanceConfiguration = {
          ...body,
          id: 'default',
          createdAt: before?.createdAt ?? now,
          updatedAt: now,
        };
        await issuanceConfiguration.put(configuration);
        return configuration;
      },
      { alone: true },
    );
  }
}
