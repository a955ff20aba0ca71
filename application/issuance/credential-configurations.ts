import { assertMayUse, mayUse } from '../../domain/clients/client.ts';
import {
  CREDENTIAL_CHANGE_RULES,
  type CredentialConfiguration,
  type CredentialConfigurationBody,
} from '../../domain/issuance/configuration.ts';
import { credentialConfigurationResource } from '../../domain/issuance/credential-configuration.resource.ts';
import { findLifetimeProblems } from '../../domain/issuance/lifetime-findings.ts';
import { scopeOf, typeOf } from '../../domain/issuance/metadata.ts';
import { findOtherAlgorithmProblems } from '../../domain/issuance/stated-abilities.ts';
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
import { changeOwn, changeOwnAlone } from '../transactions/own-changes.ts';
import { assertNotFrozen, withFrozenType } from '../type-metadata/hosted-type.ts';
import { assertCallable } from '../webhooks/called-addresses.ts';
import { assertMayAskFor, assertMayHear, assertOwnCredential } from './credential-rights.ts';

const PORTS = {
  store: Store,
  clock: Clock,
  schemaValidator: SchemaValidator,
  webhooks: Webhooks,
  issuerRegistration: IssuerRegistration,
};
type Ports = PortsOf<typeof PORTS>;

/** A configuration that was written, with what follows from the key chains of the tenant. */
export type WrittenCredentialConfiguration = CredentialConfiguration & { readonly findings?: readonly Finding[] };

/** The credential configurations that a caller may see; a restricted client sees its own only. */
export class ListCredentialConfigurations extends needs({}) {
  async execute(caller: TenantCaller): Promise<readonly CredentialConfiguration[]> {
    const all = await caller.configured.writtenCredentialConfigurations();
    return all.filter(({ id }) => mayUse(caller.allowedIssuanceConfigs, id));
  }
}

export class GetCredentialConfiguration extends needs({}) {
  /** @throws Failure `not_found`, also for one that the client may not use. */
  async execute(caller: TenantCaller, id: string): Promise<CredentialConfiguration> {
    return visible(caller, id);
  }
}

/** Creates a credential configuration, or replaces the one of the same id. */
export class ReplaceCredentialConfiguration extends needs(PORTS) {
  /** @throws Failure `invalid_input` with the path of the fault; nothing is stored then. */
  async execute(caller: TenantCaller, body: CredentialConfigurationBody): Promise<WrittenCredentialConfiguration> {
    assertMayUse(caller.allowedIssuanceConfigs, [body.id]);
    return put(this.ports, caller, body.id, () => ({ body }));
  }
}

/** Changes single members; null resets an optional one. */
export class UpdateCredentialConfiguration extends needs(PORTS) {
  /** @throws Failure `not_found`, `invalid_input`. */
  async execute(caller: TenantCaller, id: string, change: Readonly<Record<string, unknown>>): Promise<WrittenCredentialConfiguration> {
    if (change['id'] !== undefined && change['id'] !== id) throw invalidInput('id', 'the id cannot be changed');
    await visible(caller, id);
    return put(this.ports, caller, id, (before) => {
      if (before === undefined) throw unknown();
      return mergeChange(CREDENTIAL_CHANGE_RULES, before, change);
    });
  }
}

export class DeleteCredentialConfiguration extends needs({ store: Store }) {
  /** @throws Failure `not_found`; `conflict` while credentials may carry the hash of its type metadata. */
  async execute(caller: TenantCaller, id: string): Promise<void> {
    await visible(caller, id);
    await changeOwn(this.ports.store, caller, async ({ credentialConfigurations }) => {
      assertNotFrozen(await credentialConfigurations.get(id));
      await credentialConfigurations.remove(id);
    });
  }
}

const unknown = () => new Failure('not_found', 'there is no such credential configuration');

async function visible({ configured, allowedIssuanceConfigs }: TenantCaller, id: string): Promise<CredentialConfiguration> {
  const all = await configured.writtenCredentialConfigurations();
  const configuration = all.find((one) => one.id === id);
  if (configuration === undefined || !mayUse(allowedIssuanceConfigs, id)) throw unknown();
  return configuration;
}

/** A whole document, or a stored one with the properties of a change. */
type Written = Pick<Merged<CredentialConfigurationBody>, 'body'> & Partial<Merged<CredentialConfigurationBody>>;

async function put(
  { store, clock, schemaValidator, webhooks, issuerRegistration }: Ports,
  caller: TenantCaller,
  id: string,
  next: (before: CredentialConfiguration | undefined) => Written,
): Promise<WrittenCredentialConfiguration> {
  const now = clock.now();
  const listing = await caller.configured.credentialListing();
  const known = listing.documents.find((one) => one.id === id);
  // A registrar may be asked, so before the transaction.
  await issuerRegistration.assertTypeRegistered(caller, next(known).body, now);
  return changeOwnAlone(store, caller, async (repositories) => {
    const { credentialConfigurations, keyChains } = repositories;
    const before = await credentialConfigurations.find(id);
    const written = next(before);
    const body = keepTypeIntegrity(written.body, before);
    // What a change does not contain stays as it was accepted once, such as an address that may not be called any more.
    const isWritten = (...properties: (keyof CredentialConfigurationBody)[]) =>
      written.changed === undefined || properties.some((property) => written.changed?.has(property));
    const chains = await keyChains.list();
    if (isWritten('keyChainId')) assertKeyChainUsable(chains, 'signing', body.keyChainId, 'keyChainId', now);
    if (isWritten('keyChainId', 'config')) assertAlgorithms(body, chains, now);
    if (isWritten('schema')) assertSchemaSize(schemaValidator, body.schema, before?.schema);
    const addresses = addressesOf(body).filter(({ property }) => isWritten(property));
    assertCallable(webhooks, caller.tenantId, addresses);
    await assertMayAskFor(repositories, caller, body.iaeActions, before);
    const { claimsWebhook } = body;
    if (claimsWebhook && claimsWebhook.url !== before?.claimsWebhook?.url) assertMayHear(caller, body.iaeActions, 'claimsWebhook');
    const kept = keepSecrets(credentialConfigurationResource, body, before);
    const stored = { ...kept, createdAt: before?.createdAt ?? now, updatedAt: now };
    const configuration = withFrozenType(stored, before, caller.configured.issuer);
    const { documents: all } = await credentialConfigurations.relist(listing);
    if (isWritten('config', 'vct')) assertScopeOfOneType(configuration, all, caller);
    assertOwnCredential(caller, { after: configuration, before, all, chains, now });
    await credentialConfigurations.put(configuration);
    await issuerRegistration.assertDemanded(caller, configuration);
    const findings = findLifetimeProblems(configuration, chains, now);
    return findings.length === 0 ? configuration : { ...configuration, findings };
  });
}

/** What a configuration says of its signatures is what its key makes. */
function assertAlgorithms({ config, keyChainId }: CredentialConfigurationBody, chains: readonly KeyChain[], now: Date): void {
  if ((config.credential_signing_alg_values_supported ?? []).length === 0) return;
  const signer = findKeyChain(chains, 'signing', now, keyChainId ?? undefined);
  const [fault] = findOtherAlgorithmProblems(config, signer?.active.key.handle.algorithm);
  if (fault !== undefined) throw invalidInput(fault.path, fault.message);
}

/** One that is stored already stays usable, whatever its size. */
function assertSchemaSize(validator: SchemaValidator, schema: JsonObject | null | undefined, before: JsonObject | null | undefined): void {
  if (schema === null || schema === undefined) return;
  if (!before || canonicalJson(schema) !== canonicalJson(before)) validator.assertSize(schema);
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

/** HAIP 1.0 section 4.3: a scope means one type of credential, in however many configurations. */
function assertScopeOfOneType(
  configuration: CredentialConfiguration,
  others: readonly CredentialConfiguration[],
  { allowedIssuanceConfigs }: TenantCaller,
): void {
  // The addresses of hosted types differ by what follows the issuer, so it need not be known here.
  const type = typeOf(configuration, '');
  const clash = others.find(
    (other) => other.id !== configuration.id && scopeOf(other) === scopeOf(configuration) && typeOf(other, '') !== type,
  );
  if (clash === undefined) return;
  const named = mayUse(allowedIssuanceConfigs, clash.id) ? clash.id : 'another configuration';
  throw invalidInput('config.scope', `${named} has this scope, but is another type of credential`);
}
