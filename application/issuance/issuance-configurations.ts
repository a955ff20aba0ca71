import { issuanceConfigurationResource } from '../../domain/issuance/issuance-configuration.resource.ts';
import {
  authorizationServers,
  defaultIssuance,
  type IssuanceConfiguration,
  type IssuanceConfigurationBody,
  isPreferenceKnown,
  withDefaults,
} from '../../domain/issuance/issuance-configuration.ts';
import { findIssuanceProblems } from '../../domain/issuance/issuance-findings.ts';
import { keepWalletListPins } from '../../domain/issuance/kept-list-pins.ts';
import { type FieldError, invalidFields, invalidInput } from '../../domain/shared/failure.ts';
import { contradictions } from '../../domain/shared/finding.ts';
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
import { changeOwn, changeOwnAlone } from '../transactions/own-changes.ts';
import { findPurposeProblem, ListSigners, type NamedList } from '../trust-lists/list-signers.ts';
import { pinSigners } from '../trust-lists/verify-trust-list.ts';
import { assertCallable, type CalledAddress, listAddress } from '../webhooks/called-addresses.ts';

/** How the tenant issues; makes a default configuration when there is none. */
export class GetIssuanceConfiguration extends needs({ store: Store, clock: Clock }) {
  async execute(caller: TenantCaller): Promise<IssuanceConfiguration> {
    const known = await caller.configured.issuanceConfiguration();
    if (known !== undefined) return withDefaults(known);
    const now = this.ports.clock.now();
    return changeOwn(this.ports.store, caller, async ({ tenant, issuanceConfiguration }) => {
      const existing = await issuanceConfiguration.find('default');
      if (existing !== undefined) return existing;
      const { name } = await tenant.get();
      const configuration: IssuanceConfiguration = { ...defaultIssuance(name), id: 'default', createdAt: now, updatedAt: now };
      // What the profile of the tenant demands beyond the defaults has to be said by somebody.
      const { profile } = caller.configured;
      if (profile !== null && contradictions(findIssuanceProblems(configuration, profile), profile).length > 0) return configuration;
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
   * @throws Failure `invalid_input` for a key chain that cannot sign, a preferred server that is none of the
   *   tenant's, addresses that may not be called, trust lists that cannot be had, or the placeholder of a secret that nobody stored.
   */
  async execute(caller: TenantCaller, wanted: IssuanceConfigurationBody): Promise<IssuanceConfiguration> {
    const { store, clock, settings, remote } = this.ports;
    const now = clock.now();
    if (!isPreferenceKnown(caller.configured.issuer, wanted)) {
      const known = authorizationServers(caller.configured.issuer, wanted);
      const message = `name one of authServers, the chained server when it is enabled, or built-in: ${known.join(', ') || 'there is none'}`;
      throw invalidInput('preferredAuthServer', message);
    }
    assertCallable(remote, caller.tenantId, addressesOf(wanted, settings));
    const body = await this.#pinned(caller, wanted);
    await this.ports.issuerRegistration.assertIssuerRegistered(caller, body.registrationCert, now);
    return changeOwnAlone(store, caller, async ({ issuanceConfiguration, keyChains }) => {
      const chains = await keyChains.list();
      assertKeyChainUsable(chains, 'signing', body.signingKeyId, 'signingKeyId', now);
      const chainedKey = body.chainedAs?.token.signingKeyId;
      assertKeyChainUsable(chains, 'signing', chainedKey, 'chainedAs.token.signingKeyId', now);
      const before = await issuanceConfiguration.find('default');
      const configuration: IssuanceConfiguration = {
        ...keepSecrets(issuanceConfigurationResource, body, before),
        id: 'default',
        createdAt: before?.createdAt ?? now,
        updatedAt: now,
      };
      await issuanceConfiguration.put(configuration);
      return configuration;
    });
  }

  /** Certificates that a document brings say who signs its lists; else the signers of new lists are looked for, and pinned. */
  async #pinned(caller: TenantCaller, wanted: IssuanceConfigurationBody): Promise<IssuanceConfigurationBody> {
    const before = await caller.configured.issuanceConfiguration();
    const known = before && withDefaults(before);
    const isStored = (uri: string) => known?.walletProviderTrustLists.includes(uri) ?? false;
    if (wanted.walletProviderTrustListCertificates.length > 0) {
      await this.#assertWalletProviders(caller, wanted, isStored);
      return wanted;
    }
    const body = keepWalletListPins(wanted, known);
    const kept = body.walletProviderTrustListCertificates;
    const isNew = (uri: string) => kept.length === 0 || !isStored(uri);
    const lists = body.walletProviderTrustLists.map((uri, index): NamedList => {
      const list = { uri, path: `walletProviderTrustLists.${index}` };
      // A list that an earlier release stored stays accepted.
      return isStored(uri) ? list : { ...list, purpose: WALLET_PROVIDERS };
    });
    const pins = await this.ports.listSigners.pin(
      caller.tenantId,
      lists.filter(({ uri }) => isNew(uri)),
    );
    return { ...body, walletProviderTrustListCertificates: [...new Set([...kept, ...pins.values()])] };
  }

  /**
   * New lists whose certificates the document gives. One that cannot be fetched now is accepted, as its signers are pinned.
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
