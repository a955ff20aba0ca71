import { assertMayUse, mayUse } from '../../domain/clients/client.ts';
import { assertOwnNames, type Named } from '../../domain/clients/own-names.ts';
import { demandedLists } from '../../domain/dcql/demanded-lists.ts';
import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { certificateFor } from '../../domain/registrar/registration-certificate-request.ts';
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
import { keepDemandedListPins } from '../../domain/verification/kept-list-pins.ts';
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
import { changeOwnAlone } from '../transactions/own-changes.ts';
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

/** What a registration certificate is held against. */
const CERTIFIED = ['dcql_query', 'registrationCert', 'purpose', 'accessKeyChainId', 'furtherAccessKeyChainIds'] as const;

/** The presentation configurations that the client may use, in order of their ids. */
export class ListPresentationConfigurations extends needs({}) {
  async execute(caller: TenantCaller): Promise<readonly PresentationConfiguration[]> {
    const configurations = await caller.configured.presentationConfigurations();
    return configurations.filter(({ id }) => mayUse(caller.allowedPresentationConfigs, id));
  }
}

export class GetPresentationConfiguration extends needs({}) {
  /** @throws Failure `not_found` also for one outside the client's restriction. */
  async execute(caller: TenantCaller, id: string): Promise<PresentationConfiguration> {
    assertMaySee(caller, id);
    const configuration = await caller.configured.presentationConfiguration(id);
    if (configuration === undefined) throw unknownConfiguration(id);
    return configuration;
  }
}

/** Creates a presentation configuration, or replaces the one of that id. */
export class ReplacePresentationConfiguration extends needs(PORTS) {
  /**
   * @throws Failure `forbidden` for an id outside the client's restriction and an order without its role, `invalid_input` for references that
   *   lead nowhere, addresses that may not be called, documents that are not trust lists and a registration certificate that does not cover the query,
   *   `unavailable` without registrar.
   */
  async execute(
    caller: TenantCaller,
    wanted: PresentationConfigurationBody,
    report: ReportFindings = () => {},
  ): Promise<PresentationConfiguration> {
    const { store, clock, settings, remote, registrationCertificates, listSigners } = this.ports;
    assertMayUse(caller.allowedPresentationConfigs, [wanted.id]);
    const before = await caller.configured.presentationConfiguration(wanted.id);
    assertMayOrder(caller, before, wanted);
    assertCallable(remote, caller.tenantId, addressesOf(wanted, settings));
    const [body, findings] = await Promise.all([
      pinDemandedLists(listSigners, caller.tenantId, keepDemandedListPins(wanted, before)),
      findTrustListProblems(listSigners, caller.tenantId, wanted.trustAnchors, before?.trustAnchors ?? []),
    ]);
    report(findings);
    await registrationCertificates.assertUsable(caller.configured, body, clock.now());
    return changeOwnAlone(store, caller, async (repositories) => {
      const known = await repositories.presentationConfigurations.find(body.id);
      await assertMayPut(caller, repositories, known, body);
      return put(this.ports, caller.tenantId, repositories, known, { body });
    });
  }
}

/** Changes members of a presentation configuration; null resets one to its default. */
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
    const before = await caller.configured.presentationConfiguration(id);
    const pinned = before && (await this.#pinned(caller, before, changes, report));
    if (before !== undefined && CERTIFIED.some((member) => changes[member] !== undefined)) {
      const after = merge(before, changes);
      assertMayOrder(caller, before, after);
      await registrationCertificates.assertUsable(caller.configured, after, clock.now());
    }
    return changeOwnAlone(store, caller, async (repositories) => {
      const known = await repositories.presentationConfigurations.get(id);
      const after = withAnchors(merge(known, changes), pinned ?? []);
      await assertMayPut(caller, repositories, known, after);
      const changed = new Set(Object.keys(defined(changes)));
      return put(this.ports, caller.tenantId, repositories, known, { body: after, changed });
    });
  }

  /** Anchors for lists that the changed query names for the first time. */
  async #pinned(
    caller: TenantCaller,
    before: PresentationConfiguration,
    changes: PresentationConfigurationUpdate,
    report: ReportFindings,
  ): Promise<PresentationConfigurationBody['trustAnchors']> {
    if (changes.dcql_query === undefined && changes.trustAnchors === undefined) return [];
    const { settings, remote, listSigners } = this.ports;
    const after = keepDemandedListPins(merge(before, changes), before);
    assertCallable(remote, caller.tenantId, addressesOf(after, settings));
    const { trustAnchors: changed } = merge(before, changes);
    const [{ trustAnchors }, findings] = await Promise.all([
      pinDemandedLists(listSigners, caller.tenantId, after),
      changes.trustAnchors === undefined ? [] : findTrustListProblems(listSigners, caller.tenantId, changed, before.trustAnchors ?? []),
    ]);
    report(findings);
    return trustAnchors;
  }
}

/** Removes a presentation configuration. Requests that are under way then trust nobody and fail. */
export class DeletePresentationConfiguration extends needs({ store: Store }) {
  /** @throws Failure `not_found`, or `conflict` while a credential is issued only after this presentation. */
  async execute(caller: TenantCaller, id: string): Promise<void> {
    assertMaySee(caller, id);
    const listing = await caller.configured.credentialListing();
    await changeOwnAlone(this.ports.store, caller, async ({ presentationConfigurations, credentialConfigurations }) => {
      assertNotAskedFor(id, (await credentialConfigurations.relist(listing)).documents, caller);
      await presentationConfigurations.remove(id);
    });
  }
}

function assertNotAskedFor(id: string, configurations: readonly CredentialConfiguration[], { allowedIssuanceConfigs }: TenantCaller): void {
  const asking = configurations.find(({ iaeActions }) =>
    iaeActions?.some((action) => action.type === 'openid4vp_presentation' && action.presentationConfigId === id),
  );
  if (asking === undefined) return;
  const named = mayUse(allowedIssuanceConfigs, asking.id) ? `the credential configuration ${asking.id}` : 'a credential configuration';
  throw new Failure('conflict', `${named} asks for it in its iaeActions`);
}

/** Looks again at what is stored: somebody may have changed it meanwhile. @throws Failure `forbidden`. */
async function assertMayPut(
  caller: TenantCaller,
  { presentationConfigurations }: TenantRepositories,
  known: PresentationConfiguration | undefined,
  body: PresentationConfigurationBody,
): Promise<void> {
  assertMayOrder(caller, known, body);
  // Who is restricted to none looks at no other.
  if ((caller.allowedPresentationConfigs ?? []).length === 0) return;
  assertOwnAccessKey(caller, body, known, await presentationConfigurations.list());
}

/** A whole document, or a stored one with the properties of a change. */
type Written = { readonly body: PresentationConfigurationBody; readonly changed?: ReadonlySet<string> };

async function put(
  { clock, settings, remote, certificates }: Ports,
  tenantId: TenantId,
  { keyChains, presentationConfigurations }: TenantRepositories,
  known: PresentationConfiguration | undefined,
  { body, changed }: Written,
): Promise<PresentationConfiguration> {
  const now = clock.now();
  const chains = await keyChains.list();
  // What a change does not contain stays as it was accepted once, such as an address that may not be called any more.
  const isWritten = (property: string) => changed === undefined || changed.has(property);
  assertReferences(body, { chains, certificates, publicUrl: settings.publicUrl, now }, isWritten);
  const addresses = addressesOf(body, settings).filter(({ path }) => isWritten(path.split('.', 1)[0] ?? ''));
  assertCallable(remote, tenantId, addresses);
  const configuration: PresentationConfiguration = {
    ...keepSecrets(presentationConfigurationResource, body, known),
    createdAt: known?.createdAt ?? now,
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
  const demanded = demandedLists(dcql_query).map(({ uri, path }) => listAddress(path, uri, settings));
  return [{ path: 'webhook.url', url: webhook?.url }, ...lists, ...demanded];
}

/** Properties are replaced as a whole. */
function merge(stored: PresentationConfiguration, changes: PresentationConfigurationUpdate): PresentationConfigurationBody {
  return mergeChange(PRESENTATION_CHANGE_RULES, stored, changes).body;
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
 * A query may name trust lists (OpenID4VP 1.0 section 6.1.1, `etsi_tl`) that are no anchors yet: they become some, under the
 * certificate of who signs them now.
 * @throws Failure `invalid_input` for lists that cannot be had.
 */
async function pinDemandedLists(
  signers: ListSigners,
  tenantId: TenantId,
  body: PresentationConfigurationBody,
): Promise<PresentationConfigurationBody> {
  const named = new Set(listsOf(body.trustAnchors));
  const unnamed = new Map(
    demandedLists(body.dcql_query)
      .filter(({ uri }) => !named.has(uri))
      .map((list) => [list.uri, list]),
  );
  if (unnamed.size === 0) return body;
  const pins = await signers.pin(tenantId, [...unnamed.values()]);
  const added = [...unnamed.keys()].map((trustList) => {
    const pem = pins.get(trustList);
    return pem === undefined ? { trustList } : { trustList, signedBy: [pem] };
  });
  return withAnchors(body, added);
}

/** Adds anchors for lists that the query names and `trustAnchors` does not. */
function withAnchors(body: PresentationConfigurationBody, anchors: Anchors): PresentationConfigurationBody {
  const named = new Set(listsOf(body.trustAnchors));
  const wanted = new Set(demandedLists(body.dcql_query).map(({ uri }) => uri));
  const added = anchors.filter((anchor) => 'trustList' in anchor && wanted.has(anchor.trustList) && !named.has(anchor.trustList));
  return added.length === 0 ? body : { ...body, trustAnchors: [...body.trustAnchors, ...added] };
}

function listsOf(anchors: Anchors): readonly string[] {
  return anchors.flatMap((anchor) => ('trustList' in anchor ? [anchor.trustList] : []));
}

/**
 * A registration certificate that is to be obtained is ordered at the registrar, in the name of the tenant and for what the query asks.
 * @throws Failure `forbidden` when the caller may not order, and would.
 */
function assertMayOrder(
  { roles }: Pick<TenantCaller, 'roles'>,
  before: PresentationConfigurationBody | undefined,
  after: PresentationConfigurationBody,
): void {
  if (after.registrationCert?.body === undefined || roles.includes('registrar:manage')) return;
  const ordered = ({ registrationCert, dcql_query, purpose }: PresentationConfigurationBody) =>
    canonicalJson({
      ordered: registrationCert && certificateFor(registrationCert, purpose).body,
      dcql_query,
    });
  if (before !== undefined && ordered(before) === ordered(after)) return;
  throw new Failure(
    'forbidden',
    'registrationCert: a certificate is ordered at the registrar with the role registrar:manage; name one by id or jwt',
  );
}

/** @throws Failure `forbidden` for a restricted client that asks in the name of another configuration. */
function assertOwnAccessKey(
  { allowedPresentationConfigs }: TenantCaller,
  after: PresentationConfigurationBody,
  before: PresentationConfiguration | undefined,
  all: readonly PresentationConfiguration[],
): void {
  // By whichever member it is named.
  const named = (body: PresentationConfigurationBody): Named => ({ id: body.id, names: { accessKeyChainId: accessKeyChainsOf(body) } });
  assertOwnNames(allowedPresentationConfigs, named(after), before && named(before), all.map(named));
}
