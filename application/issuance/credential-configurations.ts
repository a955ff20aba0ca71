import { assertMayUse, mayUse } from '../../domain/clients/client.ts';
import {
  CREDENTIAL_CHANGE_RULES,
  type CredentialConfiguration,
  type CredentialConfigurationBody,
} from '../../domain/issuance/configuration.ts';
import { credentialConfigurationResource } from '../../domain/issuance/credential-configuration.resource.ts';
import { findOtherAlgorithmProblems } from '../../domain/issuance/declared-capabilities.ts';
import { findLifetimeProblems } from '../../domain/issuance/lifetime-findings.ts';
import { scopeOf, typeOf } from '../../domain/issuance/metadata.ts';
import { keepTypeIntegrity } from '../../domain/issuance/type-metadata.ts';
import { findKeyChain, type KeyChain } from '../../domain/keys/key-chain.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { Finding } from '../../domain/shared/finding.ts';
import { canonicalJson, type JsonObject } from '../../domain/shared/json.ts';
import { type Merged, mergeChange } from '../../domain/shared/merge-change.ts';
import { keepSecrets } from '../../domain/shared/secrets.ts';
import type { TenantCaller } from '../caller.ts';
import { assertKeyChainUsable } from '../keys/key-references.ts';
import { needs, type PortsOf } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { SchemaValidator } from '../ports/schema-validator.ts';
import { Store } from '../ports/store.ts';
import { Webhooks } from '../ports/webhooks.ts';
import { IssuerRegistration } from '../registrar/issuer-registration.ts';
import { changeTenant, changeTenantExclusively } from '../transactions/tenant-changes.ts';
import { assertNotFrozen, withFrozenType } from '../type-metadata/hosted-type.ts';
import { assertCallable } from '../webhooks/called-addresses.ts';
import { assertMayReceivePresentations, assertMayRequestPresentations, assertOwnCredential } from './credential-rights.ts';

const PORTS = { store: Store, clock: Clock, schemaValidator: SchemaValidator, webhooks: Webhooks, issuerRegistration: IssuerRegistration };
type Ports = PortsOf<typeof PORTS>;

/** A written configuration with warnings that depend on the key chains of the tenant. */
export type WrittenCredentialConfiguration = CredentialConfiguration & { readonly findings?: readonly Finding[] };

/** Lists credential configurations; a restricted client sees only those that it may use. */
export class ListCredentialConfigurations extends needs({}) {
  async execute(caller: TenantCaller): Promise<readonly CredentialConfiguration[]> {
    const configurations = await caller.tenant.writtenCredentialConfigurations();
    return configurations.filter(({ id }) => mayUse(caller.allowedIssuanceConfigs, id));
  }
}

export class GetCredentialConfiguration extends needs({}) {
  /** @throws Failure `not_found`, also for one that the client may not use. */
  async execute(caller: TenantCaller, id: string): Promise<CredentialConfiguration> {
    return getVisible(caller, id);
  }
}

/** Creates a credential configuration, or replaces the one of the same id. */
export class ReplaceCredentialConfiguration extends needs(PORTS) {
  /** @throws Failure `invalid_input` with the path of the fault; nothing is stored then. */
  async execute(caller: TenantCaller, body: CredentialConfigurationBody): Promise<WrittenCredentialConfiguration> {
    assertMayUse(caller.allowedIssuanceConfigs, [body.id]);
    return write(this.ports, caller, body.id, () => ({ body }));
  }
}

/** Changes single properties; null resets an optional one. */
export class UpdateCredentialConfiguration extends needs(PORTS) {
  /** @throws Failure `not_found`, `invalid_input`. */
  async execute(caller: TenantCaller, id: string, change: Readonly<Record<string, unknown>>): Promise<WrittenCredentialConfiguration> {
    if (change['id'] !== undefined && change['id'] !== id) throw invalidInput('id', 'the id cannot be changed');
    await getVisible(caller, id);
    return write(this.ports, caller, id, (storedConfiguration) => {
      if (storedConfiguration === undefined) throw configurationNotFoundError();
      return mergeChange(CREDENTIAL_CHANGE_RULES, storedConfiguration, change);
    });
  }
}

export class DeleteCredentialConfiguration extends needs({ store: Store }) {
  /** @throws Failure `not_found`; `conflict` while credentials may carry the hash of its type metadata. */
  async execute(caller: TenantCaller, id: string): Promise<void> {
    await getVisible(caller, id);
    await changeTenant(this.ports.store, caller, async ({ credentialConfigurations }) => {
      assertNotFrozen(await credentialConfigurations.get(id));
      await credentialConfigurations.remove(id);
    });
  }
}

const configurationNotFoundError = () => new Failure('not_found', 'there is no such credential configuration');

async function getVisible({ tenant, allowedIssuanceConfigs }: TenantCaller, id: string): Promise<CredentialConfiguration> {
  const configurations = await tenant.writtenCredentialConfigurations();
  const configuration = configurations.find((entry) => entry.id === id);
  if (configuration === undefined || !mayUse(allowedIssuanceConfigs, id)) throw configurationNotFoundError();
  return configuration;
}

/** A whole document, or a stored one with the changed properties. */
type WrittenBody = Pick<Merged<CredentialConfigurationBody>, 'body'> & Partial<Merged<CredentialConfigurationBody>>;

async function write(
  { store, clock, schemaValidator, webhooks, issuerRegistration }: Ports,
  caller: TenantCaller,
  id: string,
  merge: (stored: CredentialConfiguration | undefined) => WrittenBody,
): Promise<WrittenCredentialConfiguration> {
  const now = clock.now();
  const listing = await caller.tenant.credentialListing();
  const cached = listing.documents.find((entry) => entry.id === id);
  // Before the transaction, since a registrar may be called.
  await issuerRegistration.assertTypeRegistered(caller, merge(cached).body, now);
  return changeTenantExclusively(store, caller, async (repositories) => {
    const { credentialConfigurations, keyChains } = repositories;
    const storedConfiguration = await credentialConfigurations.find(id);
    const merged = merge(storedConfiguration);
    const body = keepTypeIntegrity(merged.body, storedConfiguration);
    // Properties that are not part of a change are not checked again; an address may have become forbidden since.
    const isWritten = (...properties: (keyof CredentialConfigurationBody)[]) =>
      merged.changed === undefined || properties.some((property) => merged.changed?.has(property));
    const chains = await keyChains.list();
    if (isWritten('keyChainId')) assertKeyChainUsable(chains, 'signing', body.keyChainId, 'keyChainId', now);
    if (isWritten('keyChainId', 'config')) assertAlgorithms(body, chains, now);
    if (isWritten('schema')) assertSchemaSize(schemaValidator, body.schema, storedConfiguration?.schema);
    const addresses = addressesOf(body).filter(({ property }) => isWritten(property));
    assertCallable(webhooks, caller.tenantId, addresses);
    await assertMayRequestPresentations(repositories, caller, body.iaeActions, storedConfiguration);
    const { claimsWebhook } = body;
    if (claimsWebhook && claimsWebhook.url !== storedConfiguration?.claimsWebhook?.url)
      assertMayReceivePresentations(caller, body.iaeActions, 'claimsWebhook');
    const withSecrets = keepSecrets(credentialConfigurationResource, body, storedConfiguration);
    const document = { ...withSecrets, createdAt: storedConfiguration?.createdAt ?? now, updatedAt: now };
    const configuration = withFrozenType(document, storedConfiguration, caller.tenant.issuer);
    const { documents: configurations } = await credentialConfigurations.relist(listing);
    if (isWritten('config', 'vct')) assertScopeOfOneType(configuration, configurations, caller);
    assertOwnCredential(caller, {
      nextConfiguration: configuration,
      previousConfiguration: storedConfiguration,
      configurations,
      chains,
      now,
    });
    await credentialConfigurations.put(configuration);
    await issuerRegistration.assertRegisteredIfRequired(caller, configuration);
    const findings = findLifetimeProblems(configuration, chains, now);
    return findings.length === 0 ? configuration : { ...configuration, findings };
  });
}

/** The signature algorithms of a configuration must match its key. */
function assertAlgorithms({ config, keyChainId }: CredentialConfigurationBody, chains: readonly KeyChain[], now: Date): void {
  if ((config.credential_signing_alg_values_supported ?? []).length === 0) return;
  const signer = findKeyChain(chains, 'signing', now, keyChainId ?? undefined);
  const [fault] = findOtherAlgorithmProblems(config, signer?.active.key.handle.algorithm);
  if (fault !== undefined) throw invalidInput(fault.path, fault.message);
}

/** A schema that is already stored is accepted regardless of its size. */
function assertSchemaSize(
  validator: SchemaValidator,
  schema: JsonObject | null | undefined,
  storedSchema: JsonObject | null | undefined,
): void {
  if (schema === null || schema === undefined) return;
  if (!storedSchema || canonicalJson(schema) !== canonicalJson(storedSchema)) validator.assertSize(schema);
  validator.compile(schema);
}

function addressesOf({ claimsWebhook, notificationWebhook, iaeActions }: CredentialConfigurationBody) {
  const callbacks = (iaeActions ?? []).map((action, index) => ({
    property: 'iaeActions' as const,
    path: `iaeActions.${index}.callbackUrl`,
    url: action.type === 'redirect_to_web' ? action.callbackUrl : undefined,
  }));
  return [
    { property: 'claimsWebhook' as const, path: 'claimsWebhook.url', url: claimsWebhook?.url },
    { property: 'notificationWebhook' as const, path: 'notificationWebhook.url', url: notificationWebhook?.url },
    ...callbacks,
  ];
}

/** HAIP 1.0 section 4.3: a scope identifies one type of credential, also with several configurations. */
function assertScopeOfOneType(
  configuration: CredentialConfiguration,
  configurations: readonly CredentialConfiguration[],
  { allowedIssuanceConfigs }: TenantCaller,
): void {
  // Hosted types of one issuer differ in the rest of the address, so the issuer need not be known here.
  const type = typeOf(configuration, '');
  const clash = configurations.find(
    (entry) => entry.id !== configuration.id && scopeOf(entry) === scopeOf(configuration) && typeOf(entry, '') !== type,
  );
  if (clash === undefined) return;
  const clashName = mayUse(allowedIssuanceConfigs, clash.id) ? clash.id : 'another configuration';
  throw invalidInput('config.scope', `${clashName} has this scope, but another credential type`);
}
