import { createSecretKey } from 'node:crypto';
import type { ConfigurationMemory } from '../../../application/configuration-memory.ts';
import { attestationChallenge } from '../../../application/oauth/challenges.ts';
import {
  ClientAuthenticator,
  type ClientCredentials,
} from '../../../application/oauth/client-authenticator.ts';
import { ClientKeys } from '../../../application/oauth/client-keys.ts';
import { WalletProviderTrust } from '../../../application/oauth/wallet-provider-trust.ts';
import type { ServiceSettings } from '../../../application/ports/settings.ts';
import { TenantConfiguration } from '../../../application/tenant-configuration.ts';
import { TrustLists } from '../../../application/trust-lists/remote-trust-lists.ts';
import {
  defaultIssuance,
  type EffectiveIssuance,
  effectiveIssuance,
  IssuanceConfigurationBody,
} from '../../../domain/issuance/issuance-configuration.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { Profile } from '../../../domain/shared/finding.ts';
import { firstRevisions } from '../../../domain/tenants/revisions.ts';
import { inlineTrustLists } from '../../support/inline-trust-lists.ts';
import { type HolderKey, newKey } from '../../support/raw-wallet.ts';
import { type AttestationOptions, type PopOptions, WalletProvider } from '../../support/wallet-provider.ts';
import { ACME, PUBLIC_URL, World } from '../verification-flow/kit.ts';

export const SERVER = `${PUBLIC_URL}/acme`;

/** A tenant that issues as a test says. */
class ConfiguredView extends TenantConfiguration {
  readonly #body: EffectiveIssuance;

  constructor(
    world: World,
    body: IssuanceConfigurationBody,
    profile: Profile | null,
    memory?: ConfigurationMemory,
  ) {
    const revisions = firstRevisions(new Date(0));
    super(world, { id: ACME, status: 'active', revision: 1, revisions, profile }, memory);
    this.#body = effectiveIssuance(body, profile);
  }

  override async issuance(): Promise<EffectiveIssuance> {
    return this.#body;
  }
}

export type Sent = {
  readonly form?: Record<string, string>;
  readonly attestation?: AttestationOptions;
  readonly pop?: PopOptions;
  readonly audience?: string;
  /** Replaces the header fields. */
  readonly fields?: Partial<Pick<ClientCredentials, 'attestation' | 'attestationPop'>>;
};

/** An authorization server, a wallet provider whose list is served, and one installation of its wallet. */
export class ClientWorld {
  readonly world: World;
  readonly provider: WalletProvider;
  readonly settings: ServiceSettings;
  readonly instance: HolderKey = newKey();
  readonly trustLists: TrustLists;
  readonly walletProviderTrust: WalletProviderTrust;
  readonly authenticator: ClientAuthenticator;
  configured: TenantConfiguration;

  private constructor(world: World, provider: WalletProvider) {
    this.world = world;
    this.provider = provider;
    this.settings = { ...world.settings, nonceKeys: [createSecretKey(Buffer.alloc(32, 1))] };
    this.trustLists = new TrustLists({ ...world, trustListReader: inlineTrustLists() });
    this.walletProviderTrust = new WalletProviderTrust({ ...world, trustLists: this.trustLists });
    this.authenticator = new ClientAuthenticator({
      ...world,
      settings: this.settings,
      walletProviderTrust: this.walletProviderTrust,
      clientKeys: new ClientKeys(world),
    });
    this.configured = this.configure();
    world.remote.answer = (url) => {
      const { status, type, body } = provider.answer(new URL(url).pathname);
      return { status, contentType: type, body: Buffer.from(body) };
    };
  }

  static async make(): Promise<ClientWorld> {
    const world = await World.make();
    return new ClientWorld(world, await WalletProvider.make(() => world.seconds));
  }

  /** @param changes of a configuration that requires attestations of the provider. */
  configure(
    changes: Record<string, unknown> = {},
    profile: Profile | null = null,
    memory?: ConfigurationMemory,
  ): TenantConfiguration {
    const base = { ...defaultIssuance('Acme'), ...this.provider.configuration(), ...changes };
    this.configured = new ConfiguredView(this.world, IssuanceConfigurationBody.parse(base), profile, memory);
    return this.configured;
  }

  challenge(issuer = SERVER): string {
    return attestationChallenge({ ...this.world, settings: this.settings }, ACME, issuer, this.now);
  }

  get now(): Date {
    return this.world.clock.now();
  }

  /** What an attested wallet sends that is right in every respect that `sent` does not touch. */
  credentials(sent: Sent = {}): ClientCredentials {
    const pop = { challenge: this.challenge(), ...sent.pop };
    return {
      form: sent.form ?? { client_id: this.provider.clientId },
      attestation: [this.provider.attestation(this.instance, sent.attestation)],
      attestationPop: [this.provider.pop(this.instance, SERVER, pop)],
      ...sent.fields,
    };
  }

  authenticate(sent: Sent = {}) {
    const { audience = SERVER } = sent;
    return this.authenticator.execute(this.configured, audience, this.credentials(sent), this.now);
  }

  /** The code of the failure, or the kind of client. */
  async outcome(sent: Sent = {}): Promise<string> {
    try {
      return (await this.authenticate(sent)).kind;
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      return error.code;
    }
  }

  async failure(sent: Sent = {}): Promise<Failure> {
    try {
      await this.authenticate(sent);
    } catch (error) {
      if (error instanceof Failure) return error;
      throw error;
    }
    throw new Error('nothing failed');
  }
}
