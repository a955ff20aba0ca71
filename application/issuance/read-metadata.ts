import { authorizationServerMetadata, issuerMetadata, typeMetadata } from '../../domain/issuance/metadata.ts';
import { pickKeyChain } from '../../domain/keys/key-chain.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { algorithmOf, thumbprint } from '../../domain/shared/jwk.ts';
import type { Clock } from '../ports/clock.ts';
import { issuerIdentifier, type ServiceSettings } from '../ports/settings.ts';
import type { Store } from '../ports/store.ts';
import type { TenantView, TenantViews } from '../steps/tenant-views.ts';
import { publicKeys } from '../steps/wallet-tokens.ts';

type Ports = {
  readonly store: Store;
  readonly tenantViews: TenantViews;
  readonly clock: Clock;
  readonly settings: ServiceSettings;
};

export type MetadataKind = 'issuer' | 'authorization-server' | 'jwks';

/** Public documents of a tenant's issuer; built once per change of the configuration. */
export class ReadIssuerMetadata {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @returns JSON text. @throws Failure `not_found` for an unknown or suspended tenant. */
  async execute(tenantId: TenantId, kind: MetadataKind): Promise<string> {
    const view = await this.#view(tenantId);
    return view.derive(`metadata/${kind}`, () => this.#build(view, kind));
  }

  /** @throws Failure `not_found` for a configuration whose type is described elsewhere. */
  async typeMetadata(tenantId: TenantId, configurationId: string): Promise<string> {
    const view = await this.#view(tenantId);
    const configuration = await view.credentialConfiguration(configurationId);
    if (configuration === undefined || typeof configuration.vct === 'string') {
      throw new Failure('not_found', 'unknown credential type');
    }
    return JSON.stringify(typeMetadata(configuration, issuerIdentifier(this.#ports.settings, tenantId)));
  }

  async #view(tenantId: TenantId): Promise<TenantView> {
    const { store, tenantViews } = this.#ports;
    return tenantViews.ofWallet(await store.beats(tenantId).head());
  }

  async #build(view: TenantView, kind: MetadataKind): Promise<string> {
    const issuer = issuerIdentifier(this.#ports.settings, view.tenantId);
    const chains = await view.keyChains();
    if (kind === 'jwks') {
      const keys = publicKeys(chains).map(({ publicJwk }) => ({
        ...publicJwk,
        kid: thumbprint(publicJwk),
        use: 'sig',
        alg: algorithmOf(publicJwk),
      }));
      return JSON.stringify({ keys });
    }
    const configurations = await view.credentialConfigurations();
    if (kind === 'authorization-server') {
      const aggregation = (await view.tenant()).statusListConfig?.enableAggregation ?? true;
      return JSON.stringify(authorizationServerMetadata(issuer, configurations, aggregation));
    }
    const issuance = await view.issuanceConfiguration();
    const display = issuance?.display ?? [{ name: (await view.tenant()).name, locale: 'en' }];
    const now = this.#ports.clock.now();
    const metadata = issuerMetadata(
      issuer,
      { display, batchSize: issuance?.batchSize ?? 1 },
      configurations,
      ({ keyChainId }) =>
        pickKeyChain(chains, 'signing', now, keyChainId ?? undefined).active.key.handle.algorithm,
    );
    return JSON.stringify(metadata);
  }
}
