import { issuanceConfigurationResource } from '../../domain/issuance/issuance-configuration.resource.ts';
import {
  authorizationServers,
  defaultIssuance,
  type IssuanceConfiguration,
  type IssuanceConfigurationBody,
  isPreferredServerAvailable,
  withDefaults,
} from '../../domain/issuance/issuance-configuration.ts';
import { findIssuanceProblems } from '../../domain/issuance/issuance-findings.ts';
import { keepWalletListPins } from '../../domain/issuance/wallet-list-pins.ts';
import { type FieldError, invalidFields, invalidInput } from '../../domain/shared/failure.ts';
import { profileViolations } from '../../domain/shared/finding.ts';
import { keepSecrets } from '../../domain/shared/secrets.ts';
import { WALLET_PROVIDERS } from '../../domain/trust-lists/select-certificates.ts';
import type { TenantCaller } from '../caller.ts';
import { assertKeyChainUsable } from '../keys/key-references.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { Remote } from '../ports/remote.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';
import { IssuerRegistration } from '../registrar/issuer-registration.ts';
import { changeTenant, changeTenantExclusively } from '../transactions/tenant-changes.ts';
import { findPurposeProblem, ListSigners, type NamedList } from '../trust-lists/list-signers.ts';
import { pinSigners } from '../trust-lists/verify-trust-list.ts';
import { assertCallable, type CalledAddress, listAddress } from '../webhooks/called-addresses.ts';

/** Returns the issuance configuration; stores a default one if there is none. */
export class GetIssuanceConfiguration extends needs({ store: Store, clock: Clock }) {
  async execute(caller: TenantCaller): Promise<IssuanceConfiguration> {
    const storedConfiguration = await caller.tenant.issuanceConfiguration();
    if (storedConfiguration !== undefined) return withDefaults(storedConfiguration);
    const now = this.ports.clock.now();
    return changeTenant(this.ports.store, caller, async ({ tenant, issuanceConfiguration }) => {
      const existing = await issuanceConfiguration.find('default');
      if (existing !== undefined) return existing;
      const { name } = await tenant.get();
      const configuration: IssuanceConfiguration = { ...defaultIssuance(name), id: 'default', createdAt: now, updatedAt: now };
      // A profile may require values that have no default; then nothing is stored.
      const { profile } = caller.tenant;
      if (profile !== null && profileViolations(findIssuanceProblems(configuration, profile), profile).length > 0) return configuration;
      await issuanceConfiguration.put(configuration);
      return configuration;
    });
  }
}

export class ReplaceIssuanceConfiguration extends needs({
  store: Store,
  clock: Clock,
  settings: ServiceSettings,
  remote: Remote,
  listSigners: ListSigners,
  issuerRegistration: IssuerRegistration,
}) {
  /**
   * @throws Failure `invalid_input` for a key chain that cannot sign, a preferred server that the tenant does not have, addresses that
   *   may not be called, trust lists that cannot be fetched, or the placeholder of a secret that is not stored.
   */
  async execute(caller: TenantCaller, requestedBody: IssuanceConfigurationBody): Promise<IssuanceConfiguration> {
    const { store, clock, settings, remote } = this.ports;
    const now = clock.now();
    if (!isPreferredServerAvailable(caller.tenant.issuer, requestedBody)) {
      const servers = authorizationServers(caller.tenant.issuer, requestedBody);
      const message = `use one of authServers, the chained server when it is enabled, or built-in: ${servers.join(', ') || 'none exists'}`;
      throw invalidInput('preferredAuthServer', message);
    }
    assertCallable(remote, caller.tenantId, addressesOf(requestedBody, settings));
    const body = await this.#withPins(caller, requestedBody);
    await this.ports.issuerRegistration.assertIssuerRegistered(caller, body.registrationCert, now);
    return changeTenantExclusively(store, caller, async ({ issuanceConfiguration, keyChains }) => {
      const chains = await keyChains.list();
      assertKeyChainUsable(chains, 'signing', body.signingKeyId, 'signingKeyId', now);
      const chainedKey = body.chainedAs?.token.signingKeyId;
      assertKeyChainUsable(chains, 'signing', chainedKey, 'chainedAs.token.signingKeyId', now);
      const storedConfiguration = await issuanceConfiguration.find('default');
      const configuration: IssuanceConfiguration = {
        ...keepSecrets(issuanceConfigurationResource, body, storedConfiguration),
        id: 'default',
        createdAt: storedConfiguration?.createdAt ?? now,
        updatedAt: now,
      };
      await issuanceConfiguration.put(configuration);
      return configuration;
    });
  }

  /** Certificates in the document pin the signers of its lists; otherwise the signers of new lists are looked up and pinned. */
  async #withPins(caller: TenantCaller, requestedBody: IssuanceConfigurationBody): Promise<IssuanceConfigurationBody> {
    const storedConfiguration = await caller.tenant.issuanceConfiguration();
    const effectiveConfiguration = storedConfiguration && withDefaults(storedConfiguration);
    const isStored = (uri: string) => effectiveConfiguration?.walletProviderTrustLists.includes(uri) ?? false;
    if (requestedBody.walletProviderTrustListCertificates.length > 0) {
      await this.#assertWalletProviders(caller, requestedBody, isStored);
      return requestedBody;
    }
    const body = keepWalletListPins(requestedBody, effectiveConfiguration);
    const pinnedCertificates = body.walletProviderTrustListCertificates;
    const isNew = (uri: string) => pinnedCertificates.length === 0 || !isStored(uri);
    const lists = body.walletProviderTrustLists.map((uri, index): NamedList => {
      const list = { uri, path: `walletProviderTrustLists.${index}` };
      // A list that an earlier version stored stays accepted.
      return isStored(uri) ? list : { ...list, purpose: WALLET_PROVIDERS };
    });
    const pins = await this.ports.listSigners.pin(
      caller.tenantId,
      lists.filter(({ uri }) => isNew(uri)),
    );
    return { ...body, walletProviderTrustListCertificates: [...new Set([...pinnedCertificates, ...pins.values()])] };
  }

  /**
   * Checks new lists whose signers the document pins. A list that cannot be fetched now is accepted.
   * @throws Failure `invalid_input` for lists that have only other services.
   */
  async #assertWalletProviders(
    { tenantId }: TenantCaller,
    { walletProviderTrustLists: uris, walletProviderTrustListCertificates: certificates }: IssuanceConfigurationBody,
    isStored: (uri: string) => boolean,
  ): Promise<void> {
    const signers = pinSigners(certificates);
    const lists = uris.flatMap((uri, index) => (isStored(uri) ? [] : [{ uri, signers, index }]));
    const inspected = await this.ports.listSigners.inspect(tenantId, lists);
    const errors = inspected.flatMap((outcome, position): FieldError[] => {
      if ('refusal' in outcome || outcome.list === undefined) return [];
      const problem = findPurposeProblem(outcome.list, WALLET_PROVIDERS);
      if (problem === undefined) return [];
      const path = `walletProviderTrustLists.${lists[position]?.index}`;
      return [{ path, message: `The trust list cannot be used: ${problem}.` }];
    });
    if (errors.length > 0) throw invalidFields(errors);
  }
}

function addressesOf(
  { authServers, chainedAs, walletProviderTrustLists, walletClients }: IssuanceConfigurationBody,
  settings: ServiceSettings,
): readonly CalledAddress[] {
  return [
    ...authServers.map((url, index) => ({ path: `authServers.${index}`, url })),
    { path: 'chainedAs.upstream.issuer', url: chainedAs?.upstream.issuer },
    ...walletProviderTrustLists.map((url, index) => listAddress(`walletProviderTrustLists.${index}`, url, settings)),
    ...walletClients.map(({ jwks_uri: url }, index) => ({ path: `walletClients.${index}.jwks_uri`, url })),
  ];
}
