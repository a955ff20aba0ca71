import { assertMayUse, mayUse } from '../../domain/clients/client.ts';
import { assertNoForeignIdentifiers, type IdentifiedConfiguration } from '../../domain/clients/foreign-identifiers.ts';
import { requiredTrustLists } from '../../domain/dcql/required-trust-lists.ts';
import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { registrationRequestFor } from '../../domain/registrar/registration-certificate-request.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { ReportFindings } from '../../domain/shared/finding.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { canonicalJson } from '../../domain/shared/json.ts';
import { mergeChange } from '../../domain/shared/merge-change.ts';
import { keepSecrets } from '../../domain/shared/secrets.ts';
import { accessKeyChainsOf } from '../../domain/verification/access-key-chains.ts';
import {
  PRESENTATION_CHANGE_RULES,
  type PresentationConfiguration,
  type PresentationConfigurationBody,
  type PresentationConfigurationUpdate,
} from '../../domain/verification/configuration.ts';
import { keepDemandedListPins } from '../../domain/verification/list-pins.ts';
import { presentationConfigurationResource } from '../../domain/verification/presentation-configuration.resource.ts';
import type { TenantCaller } from '../caller.ts';
import { needs, type PortsOf } from '../needs.ts';
import { Certificates } from '../ports/certificates.ts';
import { Clock } from '../ports/clock.ts';
import { Remote } from '../ports/remote.ts';
import type { TenantRepositories } from '../ports/repositories.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';
import { RegistrationCertificates } from '../registrar/registration-certificates.ts';
import { changeTenantExclusively } from '../transactions/tenant-changes.ts';
import { ListSigners } from '../trust-lists/list-signers.ts';
import { assertCallable, type CalledAddress, listAddress } from '../webhooks/called-addresses.ts';
import { assertReferences } from './configuration-references.ts';
import { findTrustListProblems } from './trust-list-anchors.ts';

const PORTS = {
  store: Store,
  clock: Clock,
  settings: ServiceSettings,
  registrationCertificates: RegistrationCertificates,
  remote: Remote,
  certificates: Certificates,
  listSigners: ListSigners,
};
type Ports = PortsOf<typeof PORTS>;

/** Properties that a registration certificate has to cover. */
const CERTIFIED_PROPERTIES = ['dcql_query', 'registrationCert', 'purpose', 'accessKeyChainId', 'furtherAccessKeyChainIds'] as const;

/** Lists the presentation configurations that the client may use, by id. */
export class ListPresentationConfigurations extends needs({}) {
  async execute(caller: TenantCaller): Promise<readonly PresentationConfiguration[]> {
    const configurations = await caller.tenant.presentationConfigurations();
    return configurations.filter(({ id }) => mayUse(caller.allowedPresentationConfigs, id));
  }
}

export class GetPresentationConfiguration extends needs({}) {
  /** @throws Failure `not_found` also for one outside the client's restriction. */
  async execute(caller: TenantCaller, id: string): Promise<PresentationConfiguration> {
    assertMaySee(caller, id);
    const configuration = await caller.tenant.presentationConfiguration(id);
    if (configuration === undefined) throw unknownConfiguration(id);
    return configuration;
  }
}

/** Creates a presentation configuration, or replaces the one of that id. */
export class ReplacePresentationConfiguration extends needs(PORTS) {
  /**
   * @throws Failure `forbidden` for an id outside the client's restriction and an order without its role, `invalid_input` for references
   *   that cannot be resolved, addresses that may not be called, documents that are not trust lists and a registration certificate that
   *   does not cover the query, `unavailable` without registrar.
   */
  async execute(
    caller: TenantCaller,
    requestedBody: PresentationConfigurationBody,
    report: ReportFindings = () => {},
  ): Promise<PresentationConfiguration> {
    const { store, clock, settings, remote, registrationCertificates, listSigners } = this.ports;
    assertMayUse(caller.allowedPresentationConfigs, [requestedBody.id]);
    const storedConfiguration = await caller.tenant.presentationConfiguration(requestedBody.id);
    assertMayOrder(caller, storedConfiguration, requestedBody);
    assertCallable(remote, caller.tenantId, addressesOf(requestedBody, settings));
    const [body, findings] = await Promise.all([
      pinDemandedLists(listSigners, caller.tenantId, keepDemandedListPins(requestedBody, storedConfiguration)),
      findTrustListProblems(listSigners, caller.tenantId, requestedBody.trustAnchors, storedConfiguration?.trustAnchors ?? []),
    ]);
    report(findings);
    await registrationCertificates.assertUsable(caller.tenant, body, clock.now());
    return changeTenantExclusively(store, caller, async (repositories) => {
      const storedDocument = await repositories.presentationConfigurations.find(body.id);
      await assertMayWrite(caller, repositories, storedDocument, body);
      return write(this.ports, caller.tenantId, repositories, storedDocument, { body });
    });
  }
}

/** Changes properties of a presentation configuration; null resets one to its default. */
export class UpdatePresentationConfiguration extends needs(PORTS) {
  /** @throws Failure `not_found`, or `invalid_input` when the result is not a valid configuration. */
  async execute(
    caller: TenantCaller,
    id: string,
    changes: PresentationConfigurationUpdate,
    report: ReportFindings = () => {},
  ): Promise<PresentationConfiguration> {
    const { store, clock, registrationCertificates } = this.ports;
    assertMaySee(caller, id);
    if (changes.id !== undefined && changes.id !== id) throw invalidInput('id', 'An id cannot be changed.');
    const storedConfiguration = await caller.tenant.presentationConfiguration(id);
    const pinned = storedConfiguration && (await this.#pinNewLists(caller, storedConfiguration, changes, report));
    if (storedConfiguration !== undefined && CERTIFIED_PROPERTIES.some((member) => changes[member] !== undefined)) {
      const changedBody = merge(storedConfiguration, changes);
      assertMayOrder(caller, storedConfiguration, changedBody);
      await registrationCertificates.assertUsable(caller.tenant, changedBody, clock.now());
    }
    return changeTenantExclusively(store, caller, async (repositories) => {
      const storedDocument = await repositories.presentationConfigurations.get(id);
      const changedBody = withAnchors(merge(storedDocument, changes), pinned ?? []);
      await assertMayWrite(caller, repositories, storedDocument, changedBody);
      const changedProperties = new Set(Object.keys(defined(changes)));
      return write(this.ports, caller.tenantId, repositories, storedDocument, { body: changedBody, changedProperties });
    });
  }

  /** Anchors for lists that the changed query names for the first time. */
  async #pinNewLists(
    caller: TenantCaller,
    storedConfiguration: PresentationConfiguration,
    changes: PresentationConfigurationUpdate,
    report: ReportFindings,
  ): Promise<PresentationConfigurationBody['trustAnchors']> {
    if (changes.dcql_query === undefined && changes.trustAnchors === undefined) return [];
    const { settings, remote, listSigners } = this.ports;
    const changedBody = keepDemandedListPins(merge(storedConfiguration, changes), storedConfiguration);
    assertCallable(remote, caller.tenantId, addressesOf(changedBody, settings));
    const { trustAnchors: changedAnchors } = merge(storedConfiguration, changes);
    const [{ trustAnchors }, findings] = await Promise.all([
      pinDemandedLists(listSigners, caller.tenantId, changedBody),
      changes.trustAnchors === undefined
        ? []
        : findTrustListProblems(listSigners, caller.tenantId, changedAnchors, storedConfiguration.trustAnchors ?? []),
    ]);
    report(findings);
    return trustAnchors;
  }
}

/** Removes a presentation configuration. Pending requests then trust no issuer and fail. */
export class DeletePresentationConfiguration extends needs({ store: Store }) {
  /** @throws Failure `not_found`, or `conflict` while a credential is issued only after this presentation. */
  async execute(caller: TenantCaller, id: string): Promise<void> {
    assertMaySee(caller, id);
    const listing = await caller.tenant.credentialListing();
    await changeTenantExclusively(this.ports.store, caller, async ({ presentationConfigurations, credentialConfigurations }) => {
      assertNotReferenced(id, (await credentialConfigurations.relist(listing)).documents, caller);
      await presentationConfigurations.remove(id);
    });
  }
}

function assertNotReferenced(
  id: string,
  configurations: readonly CredentialConfiguration[],
  { allowedIssuanceConfigs }: TenantCaller,
): void {
  const referrer = configurations.find(({ iaeActions }) =>
    iaeActions?.some((action) => action.type === 'openid4vp_presentation' && action.presentationConfigId === id),
  );
  if (referrer === undefined) return;
  const referrerName = mayUse(allowedIssuanceConfigs, referrer.id)
    ? `the credential configuration ${referrer.id}`
    : 'a credential configuration';
  throw new Failure('conflict', `${referrerName} uses it in its iaeActions`);
}

/** Repeats the checks on the stored configuration, which may have changed meanwhile. @throws Failure `forbidden`. */
async function assertMayWrite(
  caller: TenantCaller,
  { presentationConfigurations }: TenantRepositories,
  storedDocument: PresentationConfiguration | undefined,
  body: PresentationConfigurationBody,
): Promise<void> {
  assertMayOrder(caller, storedDocument, body);
  // A client that is restricted to none has no configurations to protect from it.
  if ((caller.allowedPresentationConfigs ?? []).length === 0) return;
  assertOwnAccessKey(caller, body, storedDocument, await presentationConfigurations.list());
}

/** A whole document, or a stored one with the changed properties. */
type WrittenBody = { readonly body: PresentationConfigurationBody; readonly changedProperties?: ReadonlySet<string> };

async function write(
  { clock, settings, remote, certificates }: Ports,
  tenantId: TenantId,
  { keyChains, presentationConfigurations }: TenantRepositories,
  storedDocument: PresentationConfiguration | undefined,
  { body, changedProperties }: WrittenBody,
): Promise<PresentationConfiguration> {
  const now = clock.now();
  const chains = await keyChains.list();
  // Properties that are not part of a change are not checked again; an address may have become forbidden since.
  const isWritten = (property: string) => changedProperties === undefined || changedProperties.has(property);
  assertReferences(body, { chains, certificates, publicUrl: settings.publicUrl, now }, isWritten);
  const addresses = addressesOf(body, settings).filter(({ path }) => isWritten(path.split('.', 1)[0] ?? ''));
  assertCallable(remote, tenantId, addresses);
  const configuration: PresentationConfiguration = {
    ...keepSecrets(presentationConfigurationResource, body, storedDocument),
    createdAt: storedDocument?.createdAt ?? now,
    updatedAt: now,
  };
  await presentationConfigurations.put(configuration);
  return configuration;
}

function addressesOf(
  { webhook, trustAnchors, dcql_query }: PresentationConfigurationBody,
  settings: ServiceSettings,
): readonly CalledAddress[] {
  const lists = trustAnchors.flatMap((anchor, index) =>
    'trustList' in anchor ? [listAddress(`trustAnchors.${index}.trustList`, anchor.trustList, settings)] : [],
  );
  const demandedAddresses = requiredTrustLists(dcql_query).map(({ uri, path }) => listAddress(path, uri, settings));
  return [{ path: 'webhook.url', url: webhook?.url }, ...lists, ...demandedAddresses];
}

function merge(storedConfiguration: PresentationConfiguration, changes: PresentationConfigurationUpdate): PresentationConfigurationBody {
  return mergeChange(PRESENTATION_CHANGE_RULES, storedConfiguration, changes).body;
}

/** @throws Failure `not_found`: what a client may not use does not exist for it. */
export function assertMaySee({ allowedPresentationConfigs }: TenantCaller, id: string): void {
  if (!mayUse(allowedPresentationConfigs, id)) throw unknownConfiguration(id);
}

export function unknownConfiguration(id: string): Failure {
  return new Failure('not_found', `there is no presentation configuration ${JSON.stringify(id)}`);
}

type Anchors = PresentationConfigurationBody['trustAnchors'];

/**
 * A query may name trust lists (OpenID4VP 1.0 section 6.1.1, `etsi_tl`) that are no anchors yet: they are added as anchors with the
 * certificate of their current signer.
 * @throws Failure `invalid_input` for lists that cannot be fetched.
 */
async function pinDemandedLists(
  signers: ListSigners,
  tenantId: TenantId,
  body: PresentationConfigurationBody,
): Promise<PresentationConfigurationBody> {
  const anchoredLists = new Set(listsOf(body.trustAnchors));
  const newLists = new Map(
    requiredTrustLists(body.dcql_query)
      .filter(({ uri }) => !anchoredLists.has(uri))
      .map((list) => [list.uri, list]),
  );
  if (newLists.size === 0) return body;
  const pins = await signers.pin(tenantId, [...newLists.values()]);
  const newAnchors = [...newLists.keys()].map((trustList) => {
    const pem = pins.get(trustList);
    return pem === undefined ? { trustList } : { trustList, signedBy: [pem] };
  });
  return withAnchors(body, newAnchors);
}

/** Adds anchors for lists that are in the query and not in `trustAnchors`. */
function withAnchors(body: PresentationConfigurationBody, anchors: Anchors): PresentationConfigurationBody {
  const anchoredLists = new Set(listsOf(body.trustAnchors));
  const queriedLists = new Set(requiredTrustLists(body.dcql_query).map(({ uri }) => uri));
  const newAnchors = anchors.filter(
    (anchor) => 'trustList' in anchor && queriedLists.has(anchor.trustList) && !anchoredLists.has(anchor.trustList),
  );
  return newAnchors.length === 0 ? body : { ...body, trustAnchors: [...body.trustAnchors, ...newAnchors] };
}

function listsOf(anchors: Anchors): readonly string[] {
  return anchors.flatMap((anchor) => ('trustList' in anchor ? [anchor.trustList] : []));
}

/**
 * Checks the right to order a registration certificate, which happens in the name of the tenant for the query.
 * @throws Failure `forbidden` for a caller that may not order.
 */
function assertMayOrder(
  { roles }: Pick<TenantCaller, 'roles'>,
  storedBody: PresentationConfigurationBody | undefined,
  changedBody: PresentationConfigurationBody,
): void {
  if (changedBody.registrationCert?.body === undefined || roles.includes('registrar:manage')) return;
  const orderOf = ({ registrationCert, dcql_query, purpose }: PresentationConfigurationBody) =>
    canonicalJson({ ordered: registrationCert && registrationRequestFor(registrationCert, purpose).body, dcql_query });
  if (storedBody !== undefined && orderOf(storedBody) === orderOf(changedBody)) return;
  throw new Failure('forbidden', 'registrationCert: an order at the registrar requires the role registrar:manage; set id or jwt instead');
}

/** @throws Failure `forbidden` for a restricted client that requests in the name of another configuration. */
function assertOwnAccessKey(
  { allowedPresentationConfigs }: TenantCaller,
  changedBody: PresentationConfigurationBody,
  storedConfiguration: PresentationConfiguration | undefined,
  configurations: readonly PresentationConfiguration[],
): void {
  // An access key counts in every property that names one.
  const namesOf = (body: PresentationConfigurationBody): IdentifiedConfiguration => ({
    id: body.id,
    names: { accessKeyChainId: accessKeyChainsOf(body) },
  });
  assertNoForeignIdentifiers(
    allowedPresentationConfigs,
    namesOf(changedBody),
    storedConfiguration && namesOf(storedConfiguration),
    configurations.map(namesOf),
  );
}
